import { Worker } from "node:worker_threads";
import { installation } from "@tapedeck/shared/installation";
import type { MaskResult, MaskTask } from "./mask-tasks.ts";

export type MaskRequest = { readonly id: number; readonly task: MaskTask };
export type MaskAnswer = { readonly id: number } & ({ readonly done: MaskResult } | { readonly failed: string });

type Waiting = { readonly resolve: (done: MaskResult) => void; readonly reject: (cause: unknown) => void };

const program = new URL(installation === "checkout" ? "./mask-worker.ts" : "./mask-worker.js", import.meta.url);

/** Masks messages in a thread of its own, which starts with the first of them and keeps no process alive. */
export class MaskThread {
  #worker: Worker | undefined;
  #lastId = 0;
  readonly #waiting = new Map<number, Waiting>();

  /** Rejects if the task throws, or the thread fails. */
  run(task: MaskTask): Promise<MaskResult> {
    this.#worker ??= this.#start();
    this.#lastId += 1;
    // A copy to transfer: the bytes may be part of a larger buffer.
    const bytes = new Uint8Array(task.bytes);
    const request: MaskRequest = { id: this.#lastId, task: { ...task, bytes } };
    const { promise, resolve, reject } = Promise.withResolvers<MaskResult>();
    this.#waiting.set(request.id, { resolve, reject });
    this.#worker.ref();
    this.#worker.postMessage(request, [bytes.buffer]);
    return promise;
  }

  #start(): Worker {
    const worker = new Worker(program);
    worker.on("message", (answer: MaskAnswer) => {
      const waiting = this.#waiting.get(answer.id);
      if ("done" in answer) waiting?.resolve(answer.done);
      else waiting?.reject(new Error(answer.failed));
      this.#waiting.delete(answer.id);
      if (this.#waiting.size === 0) worker.unref();
    });
    worker.on("error", (cause) => this.#fail(worker, cause));
    worker.on("exit", (code) => this.#fail(worker, new Error(`the thread that masks ended with ${code}`)));
    return worker;
  }

  #fail(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(cause);
    this.#waiting.clear();
  }
}
