module example.com/game-servers

go 1.22
