import type { AnswerHead } from "../call-context.ts";

/** The encoded answer of one call. A call that acts on the upstream has no head: it reads nothing from the record. */
export type EncodedAnswer = { readonly head?: AnswerHead; readonly bytes: Uint8Array };

/** Encoded messages, and the head that goes before them. */
export type EncodedStream = { readonly head: AnswerHead; readonly messages: AsyncIterable<Uint8Array> };
