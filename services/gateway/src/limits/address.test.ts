import { expect, it } from "vitest";
import { addressOf } from "./address.ts";

it.each([
  ["10.1.2.3", "10.1.2.3"],
  ["10.1.2.3:50000", "10.1.2.3"],
  ["::ffff:10.1.2.3", "10.1.2.3"],
  ["::ffff:10.1.2.3:50000", "10.1.2.3"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"],
  ["2001:db8:1:2:3:4:5:6:50000", "2001:db8:1:2::"],
  ["2001:db8:1:2::6:50000", "2001:db8:1:2::"],
  ["unknown", "unknown"],
])("%s is %s", (peer, address) => {
  expect(addressOf(peer)).toBe(address);
});
