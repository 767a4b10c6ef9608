import { status } from "@grpc/grpc-js";
import { GetInfoResponse, InspectImageRequest, InspectPodRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { delay } from "@tapedeck/shared/sync/delay";
import type { Gates } from "./calls.ts";
import type { Playback } from "./playback.ts";
import { inspectAnswer, listAnswer, shapes } from "./polls.ts";
import type { InventoryKind, RecordedAnswer, RecordedStatus, RecordedUpstream, UnaryRpc } from "./recording.ts";

export type RktCaller = {
  readonly peer: string;
  /** The client has given up or is gone. */
  readonly left: AbortSignal;
};

export type AnsweringHost = {
  /** The server's answer; undefined: none, ever; "reset": the connection ends instead. */
  readonly answer: (rpc: UnaryRpc, request: Buffer, caller: RktCaller) => Promise<RecordedAnswer | "reset" | undefined>;
  readonly setEmpty: (isEmpty: boolean) => void;
  readonly setDir: (dir: string) => void;
};

const none = Buffer.alloc(0);

export function hostAnswers(
  recording: RecordedUpstream,
  playback: Playback,
  { pass }: Pick<Gates, "pass">,
): AnsweringHost {
  return new RecordedHost(recording, playback, pass);
}

class RecordedHost implements AnsweringHost {
  readonly #name: string;
  readonly #infos: readonly RecordedAnswer[];
  readonly #playback: Playback;
  readonly #pass: Gates["pass"];
  #infosGiven = 0;
  #isEmpty = false;
  #dir: string | undefined;

  constructor(recording: RecordedUpstream, playback: Playback, pass: Gates["pass"]) {
    this.#name = recording.name;
    this.#infos = recording.rows.flatMap((row) => (row.kind === "unary" && row.rpc === "GetInfo" ? [row] : []));
    this.#playback = playback;
    this.#pass = pass;
  }

  readonly setEmpty = (isEmpty: boolean): void => {
    this.#isEmpty = isEmpty;
  };

  readonly setDir = (dir: string): void => {
    this.#dir = dir;
  };

  readonly answer: AnsweringHost["answer"] = async (rpc, request, caller) => {
    switch (rpc) {
      case "GetInfo":
        return this.#info();
      case "ListPods":
        return await this.#list("pods", request, caller);
      case "ListImages":
        return await this.#list("images", request, caller);
      case "InspectPod":
        return this.#inspect("pods", request, InspectPodRequest.decode(request).id);
      case "InspectImage":
        return this.#inspect("images", request, InspectImageRequest.decode(request).id);
    }
  };

  #info(): RecordedAnswer {
    const row = this.#infos[this.#infosGiven++] ?? this.#infos.at(-1);
    if (row?.error !== undefined) return row;
    const response = row?.response ?? infoOf(`/var/lib/rkt/data/${this.#name}`);
    if (this.#dir === undefined) return { response };
    const { info: recordedInfo } = GetInfoResponse.decode(response);
    if (recordedInfo?.global_flags !== undefined) recordedInfo.global_flags.dir = this.#dir;
    return { response: Buffer.from(GetInfoResponse.encode({ info: recordedInfo }).finish()) };
  }

  async #list<K extends InventoryKind>(kind: K, request: Buffer, { peer, left }: RktCaller) {
    const playback = this.#playback;
    const { filters, detail } = shapes[kind].list.decode(request);
    if (filters.length > 0) {
      const recorded = this.#isEmpty ? undefined : playback.recorded(shapes[kind].listRpc, request);
      const shown = this.#isEmpty ? undefined : playback.shown(kind);
      return recorded ?? { response: shown === undefined ? none : listAnswer(kind, shown, detail) };
    }
    await this.#pass(kind, () => playback.upcoming(kind, peer), left);
    while (!left.aborted) {
      const due = this.#isEmpty ? undefined : playback.take(kind, peer);
      if (due === undefined) return { response: none };
      if (due.waitMs > 0) await delay(due.waitMs, left);
      if (due.again) continue;
      const { error } = due.poll;
      if (error === undefined) return { response: listAnswer(kind, due.poll, detail) };
      return failedPoll(error);
    }
    return undefined;
  }

  #inspect<K extends InventoryKind>(kind: K, request: Buffer, id: string): RecordedAnswer {
    const recorded = this.#isEmpty ? undefined : this.#playback.recorded(shapes[kind].inspectRpc, request);
    return recorded ?? inspectAnswer(kind, this.#isEmpty ? undefined : this.#playback.shown(kind), id);
  }
}

/** The client's view: these two were not the server's words. */
function failedPoll(error: RecordedStatus): RecordedAnswer | "reset" | undefined {
  if (error.code === status.DEADLINE_EXCEEDED) return undefined;
  return error.code === status.UNAVAILABLE ? "reset" : { error };
}

/** For recordings without that call. */
function infoOf(dir: string): Buffer {
  const info = {
    rkt_version: "1.30.0+git171c416f",
    appc_version: "0.8.11",
    api_version: "1.0.0-alpha",
    global_flags: {
      dir,
      system_config_dir: "/var/lib/rkt/cfg/system",
      local_config_dir: "/var/lib/rkt/cfg/local",
      user_config_dir: "/var/lib/rkt/cfg/user",
      insecure_flags: "none",
      trust_keys_from_https: false,
    },
  };
  return Buffer.from(GetInfoResponse.encode({ info }).finish());
}
