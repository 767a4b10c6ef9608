import { expect, it } from "vitest";
import { Mailbox } from "./mailbox.ts";

it("gives what was put in, one after another", async () => {
  const box = new Mailbox<number>();
  const puts = [box.put(1), box.put(2)];
  const taken: number[] = [];
  for await (const value of box) {
    taken.push(value);
    if (value === 2) box.close();
  }
  await Promise.all(puts);
  expect(taken).toEqual([1, 2]);
});

it("lets nobody wait when it is closed", async () => {
  const box = new Mailbox<number>();
  const before = box.put(1);
  box.close();
  await before;
  await box.put(2);
  for await (const value of box) expect.fail(`${value} was taken`);
});
