import { isatty } from "node:tty";
import { ulid } from "ulid";
import { CommandError } from "../../../command-error.ts";
import { vagrantProject } from "../../../recording/vagrant-project.ts";
import { programName, type RecordableCommand } from "../recordable.ts";
import { type AddressSource, canSeeSockets, watchSockets } from "../sockets.ts";
import { logLevels, readVagrantCommand } from "./command.ts";
import { logFilter } from "./log.ts";

/** The second is how the packages of 2.3 and 2.4 call the one that has a server. */
const programs: ReadonlySet<string> = new Set(["vagrant", "vagrant-go"]);

/**
 * Vagrant's server lives inside one command, on a port that cannot be chosen and only its log reveals
 * (docs/upstreams/vagrant.md#server). On Linux the system shows who listens where; elsewhere the log has to serve,
 * which is not possible if it would go to the user's terminal.
 */
export const vagrant: RecordableCommand = {
  isIt: (program) => programs.has(programName(program)),

  async prepare({ command, env, folder, find }) {
    const [program = "", ...args] = command;
    const isUpstream = vagrant.isIt(program);
    const { subcommand, isInformational, logLevel } = readVagrantCommand(isUpstream ? args : [], env);
    if (isUpstream && isInformational) return undefined;
    if (env.VAGRANT_SERVER_ADDR) {
      throw new CommandError(
        `it uses the server at ${env.VAGRANT_SERVER_ADDR}: record that with \`tapedeck record --upstream vagrant\``,
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
    } as const;

    if (find !== "log" && canSeeSockets()) {
      const watch = watchSockets();
      const server = finding("its server (or another listener)");
      return {
        ...recordable,
        env: {},
        address: ({ pid, ended }) => server.find(watch(pid), ended),
        get notFound() {
          return server.notFound();
        },
      };
    }
    if (find === "sockets") throw new CommandError("this system does not show which process listens on a port");
    if (isatty(2)) {
      throw new CommandError(
        "on this system only Vagrant's log shows where it listens, and the log would fill your terminal: " +
          "redirect stderr (2> vagrant.log) to record",
      );
    }
    const addresses = addressRelay();
    const server = finding("its server");
    const isLogged = logLevel !== undefined && logLevels.indexOf(logLevel) <= logLevels.indexOf("info");
    return {
      ...recordable,
      env: isLogged ? {} : { VAGRANT_LOG_LEVEL: "info" },
      stderr: logFilter({ level: logLevel, onAddress: addresses.report }),
      address: ({ ended }) => server.find(addresses.findAddresses, ended),
      get notFound() {
        return server.notFound();
      },
    };
  },
};

/** Finds a command's server; `what` for people: what exited before it could be reached. */
function finding(what: string) {
  let unreachable: readonly string[] = [];
  return {
    async find(findAddresses: AddressSource, ended: AbortSignal): Promise<string | undefined> {
      // A command can be over before all is loaded that can ask its server: it is seen at least.
      const addresses = addressRelay();
      const found = new AbortController();
      findAddresses(addresses.report, AbortSignal.any([ended, found.signal]));
      // Loaded while the command starts.
      const { firstServer } = await import("./server.ts");
      const server = await firstServer(addresses.findAddresses, ended);
      found.abort();
      unreachable = server.unreachable;
      return server.address;
    },
    /** Why no server was found. */
    notFound: () =>
      unreachable.length === 0
        ? "no Vagrant server was found: only the server of vagrant-go can be recorded"
        : `${what} exited before it could be reached (${unreachable.join(", ")})`,
  };
}

/** Passes addresses to its listener, including those reported before there was one. */
function addressRelay(): { readonly report: (address: string) => void; readonly findAddresses: AddressSource } {
  const reported: string[] = [];
  let report = (address: string): void => void reported.push(address);
  return {
    report: (address) => report(address),
    findAddresses: (listener) => {
      report = listener;
      reported.forEach(listener);
    },
  };
}
