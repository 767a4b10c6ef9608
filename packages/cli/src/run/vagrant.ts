import type { Transform } from "node:stream";
import { isatty } from "node:tty";
import { ulid } from "ulid";
import { CommandError } from "../command-error.ts";
import { programName, type RecordableCommand } from "./recordable.ts";
import { canSeeSockets, type Look, watchSockets } from "./sockets.ts";
import { type LogLevel, logLevels, readVagrantCommand, vagrantProject } from "./vagrant-command.ts";
import { logFilter } from "./vagrant-log.ts";

/** The second is how the packages of 2.3 and 2.4 call the one that has a server. */
const programs: ReadonlySet<string> = new Set(["vagrant", "vagrant-go"]);

/**
 * Vagrant's server lives inside of one command, on a port that nobody chooses and nothing tells but its log. On Linux the
 * system shows who listens where; elsewhere the log has to do, which is not possible where it would be the user's terminal.
 */
export const vagrant: RecordableCommand = {
  isIt: (program) => programs.has(programName(program)),

  async prepare({ command, env, folder, find }) {
    const [program = "", ...args] = command;
    const isUpstream = vagrant.isIt(program);
    const { subcommand, tellsOnly, logLevel } = readVagrantCommand(isUpstream ? args : [], env);
    if (isUpstream && tellsOnly) return undefined;
    if (env.VAGRANT_SERVER_ADDR) {
      throw new CommandError(
        `its server is the one at ${env.VAGRANT_SERVER_ADDR}: \`tapedeck record --upstream vagrant\` records that`,
      );
    }
    const recordable = {
      upstream: "vagrant",
      isUpstream,
      endsInside: true,
      command,
      project: () => vagrantProject(folder, env),
      labels: isUpstream ? { command: `vagrant ${subcommand}` } : {},
      // Two commands have two servers, though they share a database and maybe a port, one after the other.
      settings: { server: ulid() },
      unheard: "no Vagrant server was seen: only the one of vagrant-go is recorded",
    } as const;
    const serverOf = async (look: Look, ended: AbortSignal) => {
      // Loaded while the command starts.
      const { firstServer } = await import("./vagrant-server.ts");
      return firstServer(look, ended);
    };

    if (find !== "log" && canSeeSockets()) {
      const watch = watchSockets();
      return { ...recordable, env: {}, address: ({ pid, ended }) => serverOf(watch(pid), ended) };
    }
    if (find === "sockets") throw new CommandError("this system does not show who listens where");
    if (isatty(2)) {
      throw new CommandError(
        "on this system only Vagrant's log says where it listens, and that would fill your terminal: " +
          "send stderr elsewhere (2> vagrant.log) to record",
      );
    }
    const { log, look } = readLog(logLevel);
    const isLogged = logLevel !== undefined && logLevels.indexOf(logLevel) <= logLevels.indexOf("info");
    return {
      ...recordable,
      env: isLogged ? {} : { VAGRANT_LOG_LEVEL: "info" },
      stderr: log,
      address: ({ ended }) => serverOf(look, ended),
    };
  },
};

/** The addresses that the log tells, those included that it told before somebody looked. */
function readLog(shown: LogLevel | undefined): { readonly log: Transform; readonly look: Look } {
  const told: string[] = [];
  let tell = (address: string): void => void told.push(address);
  return {
    log: logFilter({ shown, onAddress: (address) => tell(address) }),
    look: (listener) => {
      tell = listener;
      told.forEach(listener);
    },
  };
}
