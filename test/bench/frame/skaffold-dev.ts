import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { type ClientReadableStream, credentials } from "@grpc/grpc-js";
import { SkaffoldV2ServiceClient } from "@tapedeck/proto/skaffold/v2/skaffold";
import { delay } from "@tapedeck/shared/sync/delay";
import { ownPort } from "@tapedeck/shared/testing/own-port";

/** A project in which `skaffold dev` works on this machine. */
export type SkaffoldProject = {
  readonly folder: string;
  /** The file in it whose change begins a loop: an empty line is added to it each time. */
  readonly touch: string;
};

export type SkaffoldDevOptions = {
  readonly project: SkaffoldProject;
  /** Where its copy goes, so that the project stays as it is. */
  readonly into: string;
  /** Those on which Skaffold, and what it starts, has to stay. */
  readonly cores: string | undefined;
};

/** What `skaffold dev` prints when a loop is over. */
const ready = "Watching for changes...";
const startMs = 300_000;

/**
 * The real `skaffold dev` in a copy of a project. Its loops are distinguished by what it prints, so nobody needs to
 * read its API.
 */
export class SkaffoldDev implements AsyncDisposable {
  readonly address: string;
  readonly #child: ChildProcess;
  readonly #changed: string;
  /** What was printed last, for errors. */
  #text = "";
  /** Aborted at the end of the loop that runs. */
  #over = new AbortController();
  #reader: ClientReadableStream<unknown> | undefined;

  private constructor(child: ChildProcess, changed: string, port: number) {
    this.address = `127.0.0.1:${port}`;
    this.#child = child;
    this.#changed = changed;
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data: Buffer) => this.#print(String(data)));
  }

  static async start({ project, into, cores }: SkaffoldDevOptions): Promise<SkaffoldDev> {
    await cp(project.folder, into, { recursive: true });
    const port = await ownPort();
    const command = ["skaffold", "dev", "--watch-poll-interval=100", "--tail=false", `--rpc-port=${port}`];
    const [program = "", ...args] = cores === undefined ? command : ["taskset", "-c", cores, ...command];
    const child = spawn(program, args, { cwd: into, stdio: ["ignore", "pipe", "pipe"] });
    await once(child, "spawn");
    const dev = new SkaffoldDev(child, join(into, project.touch), port);
    if (await dev.#isOver(startMs)) return dev;
    await dev[Symbol.asyncDispose]();
    throw new Error(`skaffold dev in ${project.folder} did not come to its first "${ready}": ${dev.#text.slice(-500)}`);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** From the change of the file to the end of the loop, in ms; undefined when it takes longer than `boundMs`. */
  async loop(boundMs = startMs): Promise<number | undefined> {
    this.#over = new AbortController();
    const began = performance.now();
    appendFileSync(this.#changed, "\n");
    return (await this.#isOver(boundMs)) ? performance.now() - began : undefined;
  }

  /**
   * A client of Skaffold's own API that reads its events for one loop, and then no more. One that never reads stays in
   * the replay of what was before, and Skaffold does not wait for it.
   */
  async readAndStall(): Promise<void> {
    const client = new SkaffoldV2ServiceClient(this.address, credentials.createInsecure());
    this.#reader = client.events({});
    this.#reader.on("error", () => client.close());
    this.#reader.resume();
    await this.loop();
    this.#reader.pause();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#reader?.cancel();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async #isOver(boundMs: number): Promise<boolean> {
    await delay(boundMs, this.#over.signal);
    return this.#over.signal.aborted;
  }

  #print(text: string): void {
    this.#text = (this.#text + text).slice(-2_000);
    if (text.includes(ready)) this.#over.abort();
  }
}
