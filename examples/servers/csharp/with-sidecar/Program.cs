// A game server without any HTTP: it reports its number of players to hookgate-sidecar, which answers hooks for it.
//
// Build and run, in the directory of this file (.NET SDK 8 or newer, no packages):
//
//     dotnet build --configuration Release --output bin/app && dotnet bin/app/game-server.dll
//
// GAME_PORT (7777) is the UDP port of the game, SIDECAR_PORT (9358) the UDP port of the sidecar on 127.0.0.1.

using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Text;

namespace GameServer
{
    /// <summary>Sends the number of players to the sidecar.</summary>
    internal sealed class Reporter
    {
        /// <summary>
        /// Pause between two reports. The sidecar believes a report for 10 s by default, so this allows for some that
        /// are lost or late.
        /// </summary>
        private static readonly TimeSpan Every = TimeSpan.FromSeconds(2);

        // Containers of a pod share their loopback interface. This socket sends all reports. It is not connected: a
        // connected one returns the "connection refused" of an earlier report instead of sending the next one.
        private readonly Socket socket = new Socket(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);
        private readonly IPEndPoint sidecar;
        private readonly Stopwatch clock = Stopwatch.StartNew();
        private TimeSpan next = TimeSpan.Zero;
        private int reported = -1;

        public Reporter(int port)
        {
            sidecar = new IPEndPoint(IPAddress.Loopback, port);
        }

        /// <summary>Time until the next report if the number does not change.</summary>
        public TimeSpan Pause
        {
            get
            {
                TimeSpan pause = next - clock.Elapsed;
                return pause > TimeSpan.Zero ? pause : TimeSpan.Zero;
            }
        }

        /// <summary>Sends the number if it has changed or the last report is 2 s old.</summary>
        public void Report(int players)
        {
            if (players == reported && Pause > TimeSpan.Zero)
            {
                return;
            }
            try
            {
                socket.SendTo(Encoding.ASCII.GetBytes(players.ToString(CultureInfo.InvariantCulture)), sidecar);
            }
            catch (SocketException)
            {
                // A report that cannot be sent is lost, like any datagram. The sidecar gets the next one.
            }
            reported = players;
            next = clock.Elapsed + Every;
        }
    }

    internal static class Program
    {
        private static readonly HashSet<string> Players = new HashSet<string>();

        private static void Main()
        {
            // Without a handler, the exit code would be 143.
            using PosixSignalRegistration ending =
                PosixSignalRegistration.Create(PosixSignal.SIGTERM, _ => Environment.Exit(0));

            // Accepts IPv4 and IPv6, or only IPv4 where there is no IPv6.
            Socket socket = new Socket(SocketType.Dgram, ProtocolType.Udp);
            bool both = socket.AddressFamily == AddressFamily.InterNetworkV6;
            socket.Bind(new IPEndPoint(both ? IPAddress.IPv6Any : IPAddress.Any, Port("GAME_PORT", 7777)));
            socket.Blocking = false;
            Reporter reporter = new Reporter(Port("SIDECAR_PORT", 9358));

            // The game loop. It also reports, and no other thread may: if the game hangs, so do its reports, and the
            // sidecar stops answering. A timer elsewhere would go on to report the last number of a game that is dead.
            byte[] buffer = new byte[1 << 16];
            while (true)
            {
                reporter.Report(Players.Count);
                int microseconds = (int)(reporter.Pause.TotalMilliseconds * 1000);
                if (!socket.Poll(microseconds, SelectMode.SelectRead))
                {
                    continue;
                }
                EndPoint player = new IPEndPoint(both ? IPAddress.IPv6Any : IPAddress.Any, 0);
                int size;
                try
                {
                    size = socket.ReceiveFrom(buffer, ref player);
                }
                catch (SocketException)
                {
                    // The kernel may drop a datagram after it has announced it, as for a wrong checksum.
                    continue;
                }
                string reply = Play(Encoding.UTF8.GetString(buffer, 0, size));
                // Report before the reply: a player who is welcome has been counted.
                reporter.Report(Players.Count);
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

        /// <summary>Handles one datagram and returns the reply.</summary>
        private static string Play(string datagram)
        {
            string[] words = datagram.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries);
            if (words.Length != 2)
            {
                return "unknown";
            }
            string name = words[1];
            switch (words[0])
            {
                case "join":
                    Players.Add(name);
                    return "welcome " + name;
                case "leave":
                    Players.Remove(name);
                    return "bye " + name;
                default:
                    return "unknown";
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
