import { expect, it } from "vitest";
import type { ReceivedAnswer } from "../target/http-target.ts";
import {
  type AnswerClass,
  classOf,
  isAboutContent,
  outcomeOf,
  type Refused,
  retryAfterMs,
  unwritten,
} from "./answers.ts";

const now = new Date("2026-01-31T12:00:00Z");
const answer: ReceivedAnswer = {
  type: "answer",
  status: 200,
  retryAfter: undefined,
  contentType: undefined,
  body: Buffer.alloc(0),
};
const answered = (status: number, more: Partial<ReceivedAnswer> = {}): AnswerClass =>
  classOf({ ...answer, status, ...more }, now, {});
const refused = (status: number) => answered(status) as Refused;
const failure = (reached: boolean) => classOf({ type: "failure", error: "gone", reached }, now, {}) as Refused;

it("takes every 2xx as accepted, and 4xx as final but 408, 425 and 429", () => {
  const finals = [301, 307, 400, 401, 403, 404, 409, 410, 413, 418, 422, 451];
  const others = [408, 425, 429, 500, 501, 502, 503, 504, 599];
  for (const status of [200, 201, 202, 204, 299]) expect(answered(status)).toEqual({ type: "accepted" });
  for (const status of finals) expect(refused(status)).toMatchObject({ isFinal: true, isAway: false });
  for (const status of others) expect(refused(status)).toMatchObject({ isFinal: false });
  for (const status of [408, 425, 429, 503]) expect(refused(status).isAway).toBe(true);
  expect(failure(false)).toMatchObject({ isFinal: false, isAway: true });
  expect(failure(true)).toMatchObject({ isFinal: false, isAway: false });
});

it("calls nothing refused that nobody has answered", () => {
  const [away, others] = [
    [408, 425, 429, 503],
    [301, 400, 401, 404, 422, 500, 502],
  ];
  for (const status of away) expect(outcomeOf(answered(status))).toBe("away");
  for (const reached of [false, true]) expect(outcomeOf(failure(reached))).toBe("away");
  for (const status of others) expect(outcomeOf(answered(status))).toBe("refused");
  expect(outcomeOf(unwritten(new Error("no time")))).toBe("refused");
  expect(outcomeOf(answered(204))).toBe("delivered");
});

it("reads Retry-After as seconds or as a date, up to an hour", () => {
  expect(retryAfterMs("7", now)).toBe(7_000);
  expect(retryAfterMs("Sat, 31 Jan 2026 12:00:30 GMT", now)).toBe(30_000);
  expect(retryAfterMs("Sat, 31 Jan 2026 11:00:00 GMT", now)).toBe(0);
  expect(retryAfterMs("86400", now)).toBe(3_600_000);
  for (const text of [undefined, "soon", ""]) expect(retryAfterMs(text, now)).toBeUndefined();
});

it("says what was answered, without control characters and with the first line alone", () => {
  const body = `no \u001b[31msuch\n${"x".repeat(500)}`;
  const { error } = answered(422, { body: Buffer.from(body) }) as Refused;
  expect(error).toMatch(/^answered 422: no \[31msuch x+$/);
  expect(error.length).toBeLessThan(230);
  expect(refused(302).error).toBe("answered 302: redirects are not followed");
});

it("takes an answer of 2xx as final refusal if its format finds an error in it, and says that", () => {
  const errorIn = ({ body }: ReceivedAnswer) => (body.byteLength > 0 ? "3 spans were refused" : undefined);
  const classed = (body: string) => classOf({ ...answer, body: Buffer.from(body) }, now, { errorIn });
  expect(classed("")).toEqual({ type: "accepted" });
  expect(classed("x")).toMatchObject({
    type: "refused",
    isFinal: true,
    isAway: false,
    error: "answered 200: 3 spans were refused",
  });
});

it("takes the 400 of a chat whose webhook is gone as one about the target, and not about the message", () => {
  const isOfContent = (status: number, body: string) =>
    isAboutContent(answered(status, { body: Buffer.from(body) }) as Refused);
  const ofMattermost = (id: string) => `{"id":"web.incoming_webhook.${id}.app_error","message":"…","status_code":400}`;
  for (const id of ["invalid", "user", "channel"]) expect(isOfContent(400, ofMattermost(id))).toBe(false);
  for (const id of ["parse", "text", "attachment"]) expect(isOfContent(400, ofMattermost(id))).toBe(true);
  const ofRocketChat = '{"success":false,"error":"Invalid integration id or token provided."}';
  expect(isOfContent(400, ofRocketChat)).toBe(false);
  expect(isOfContent(400, "user_not_found")).toBe(false);
  expect(isOfContent(400, "no user_not_found here")).toBe(true);
  for (const status of [400, 413, 422]) expect(isOfContent(status, "invalid_payload")).toBe(true);
  expect(isOfContent(404, "no_service")).toBe(false);
});

it("takes an answer that did not end as what its status says, unless its format reads the body of a success", () => {
  const errorIn = () => undefined;
  const classed = (status: number, format: Parameters<typeof classOf>[2]) =>
    classOf({ ...answer, status, body: Buffer.from("ta"), isCut: true }, now, format);
  expect(classed(202, {})).toEqual({ type: "accepted" });
  expect(classed(202, { errorIn })).toMatchObject({ type: "refused", isFinal: false, isAway: false });
  for (const format of [{}, { errorIn }]) expect(classed(422, format)).toMatchObject({ isFinal: true, status: 422 });
});
