import { expect, it } from "vitest";
import { isPublicAddress } from "./address-rules.ts";

it.each([
  ["this machine", "127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "::", "0:0:0:0:0:0:0:1"],
  ["a private network", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1", "fc00::1", "fec0::1"],
  ["the link, and what clouds answer there", "169.254.169.254", "fe80::1", "fe80::1%eth0", "fd00:ec2::254"],
  ["clouds that answer elsewhere", "168.63.129.16", "100.100.100.200"],
  ["a carrier's network", "100.64.0.1", "100.127.255.255"],
  ["many or nobody", "224.0.0.1", "255.255.255.255", "240.0.0.1", "ff02::1"],
  ["a document or a benchmark", "192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "2001:db8::1", "3fff::1"],
  [
    "IPv4 that is written as IPv6",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
  ],
  [
    "IPv4 behind a translator or a tunnel",
    "64:ff9b::7f00:1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
  ],
  ["nothing", "", "localhost", "127.1", "0x7f.1", "2130706433", "example.com"],
])("refuses addresses of %s", (_, ...addresses) => {
  expect(addresses.filter(isPublicAddress)).toEqual([]);
});

it("takes public addresses, of IPv6 also those of IPv4 behind NAT64", () => {
  const addresses = ["8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "169.253.0.1", "192.169.0.1"];
  const long = ["2606:4700::1111", "2a00:1450:4001::200e", "64:ff9b::808:808", "64:ff9b::8.8.8.8"];
  expect([...addresses, ...long].filter((address) => !isPublicAddress(address))).toEqual([]);
});
