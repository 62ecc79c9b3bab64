// A game server that serves the hook endpoint itself: players play over UDP, hooks ask over HTTP.
//
// Build and run, in the directory of this file (.NET SDK 8 or newer, no packages):
//
//     dotnet build --configuration Release --output bin/app && dotnet bin/app/game-server.dll
//
// GAME_PORT (7777) is the UDP port of the game, HOOK_PORT (9091) the TCP port of the hook endpoint.
//
// The endpoint is a minimal API of ASP.NET Core. HttpListener is no replacement: it answers 411 to a POST without the
// header Content-Length, which hooks without a body send, and listens on IPv4 addresses only.

using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Text;

namespace GameServer
{
    /// <summary>State that the game loop and the threads of the hook endpoint share.</summary>
    internal sealed class Game
    {
        private readonly object gate = new object();
        private readonly HashSet<string> players = new HashSet<string>();
        private bool draining;

        public int Players
        {
            get
            {
                lock (gate)
                {
                    return players.Count;
                }
            }
        }

        /// <summary>Stops new joins. Hooks are retried, so a second call must be harmless.</summary>
        public void Drain()
        {
            lock (gate)
            {
                draining = true;
            }
        }

        /// <summary>Handles one datagram and returns the reply.</summary>
        public string Play(string datagram)
        {
            string[] words = datagram.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries);
            if (words.Length != 2)
            {
                return "unknown";
            }
            string name = words[1];
            lock (gate)
            {
                switch (words[0])
                {
                    case "join":
                        if (draining)
                        {
                            return "draining";
                        }
                        players.Add(name);
                        return "welcome " + name;
                    case "leave":
                        players.Remove(name);
                        return "bye " + name;
                    default:
                        return "unknown";
                }
            }
        }
    }

    internal static class Program
    {
        private static void Main()
        {
            // Without a handler, the exit code would be 143, and the endpoint would wait for open
            // connections.
            using PosixSignalRegistration ending =
                PosixSignalRegistration.Create(PosixSignal.SIGTERM, _ => Environment.Exit(0));

            int gamePort = Port("GAME_PORT", 7777);
            int hookPort = Port("HOOK_PORT", 9091);
            Game game = new Game();
            StartHooks(game, hookPort);
            Run(game, gamePort);
        }

        /// <summary>
        /// Starts the hook endpoint. It has threads of its own and holds none while it waits for a client, so a slow
        /// client blocks nobody. Any other method gets 405, any other path 404.
        /// </summary>
        private static void StartHooks(Game game, int port)
        {
            WebApplicationBuilder builder = WebApplication.CreateBuilder();
            builder.Logging.SetMinimumLevel(LogLevel.Warning);
            builder.WebHost.ConfigureKestrel(kestrel => kestrel.ListenAnyIP(port));
            WebApplication hooks = builder.Build();

            // A GET never changes the state, so probes, browsers and curious people can do no harm.
            hooks.MapGet("/players", () => new { players = game.Players });
            hooks.MapPost("/drain", () =>
            {
                game.Drain();
                return new { draining = true };
            });
            hooks.Start();
        }

        /// <summary>Runs the game loop.</summary>
        private static void Run(Game game, int port)
        {
            // Accepts IPv4 and IPv6, or only IPv4 where there is no IPv6.
            Socket socket = new Socket(SocketType.Dgram, ProtocolType.Udp);
            bool both = socket.AddressFamily == AddressFamily.InterNetworkV6;
            socket.Bind(new IPEndPoint(both ? IPAddress.IPv6Any : IPAddress.Any, port));

            byte[] buffer = new byte[1 << 16];
            while (true)
            {
                EndPoint player = new IPEndPoint(both ? IPAddress.IPv6Any : IPAddress.Any, 0);
                int size = socket.ReceiveFrom(buffer, ref player);
                string reply = game.Play(Encoding.UTF8.GetString(buffer, 0, size));
                try
                {
                    socket.SendTo(Encoding.UTF8.GetBytes(reply), player);
                }
                catch (SocketException)
                {
                    // A reply that cannot be sent is lost, like any datagram.
                }
            }
        }

        /// <summary>Returns the port in an environment variable, or the default.</summary>
        private static int Port(string name, int byDefault)
        {
            string? text = Environment.GetEnvironmentVariable(name);
            if (text == null)
            {
                return byDefault;
            }
            if (ushort.TryParse(text, out ushort port) && port > 0)
            {
                return port;
            }
            Console.Error.WriteLine(name + " is \"" + text + "\": use a port, 1 to 65535");
            Environment.Exit(1);
            return 0;
        }
    }
}
