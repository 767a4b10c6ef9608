import type { AnswerHead } from "../call-context.ts";

/** The encoded answer of one call. That of a control call has no head where the log is away. */
export type EncodedAnswer = { readonly head?: AnswerHead; readonly bytes: Uint8Array };

/** Encoded messages, and the head that goes before them. */
export type EncodedStream = { readonly head: AnswerHead; readonly messages: AsyncIterable<Uint8Array> };

/** Encoded messages of the upstream itself. */
export type UpstreamAnswers = { readonly head?: undefined; readonly messages: AsyncIterable<Uint8Array> };

/** The same, with the messages that are there at the same time together. */
export type EncodedBatches = { readonly head: AnswerHead; readonly messages: AsyncIterable<readonly Uint8Array[]> };

/** Messages one by one, or several at a time. */
export type EncodedMessages = AsyncIterable<Uint8Array | readonly Uint8Array[]>;
