import type { ChildProcess } from "node:child_process";
import { appendFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * The folder with the logs of all parts of a cluster. It is removed with the run that passed. That of a run that failed
 * stays, and the output names it: what happens once in many runs can only be read there.
 */
export class RunLogs implements AsyncDisposable {
  readonly folder: string;
  #passed = false;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(): Promise<RunLogs> {
    return new RunLogs(await mkdtemp(join(tmpdir(), "tapedeck-cluster-logs-")));
  }

  /** The log of one part, such as "nats-1". */
  fileOf(part: string): string {
    return join(this.folder, `${part}.log`);
  }

  /** Writes a line about the test itself, with its time, to compare with those of the parts. */
  note(line: string): void {
    appendFileSync(this.fileOf("test"), `${new Date().toISOString()} ${line}\n`);
  }

  /** Keeps what a process prints. */
  keep(part: string, { stdout, stderr }: ChildProcess): void {
    for (const stream of [stdout, stderr]) stream?.on("data", (chunk) => appendFileSync(this.fileOf(part), chunk));
  }

  /** The run got to its end: nobody will read them. */
  passed(): void {
    this.#passed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#passed) await rm(this.folder, { recursive: true, force: true });
    else console.log(`the logs of all parts of the cluster are in ${this.folder}`);
  }
}
