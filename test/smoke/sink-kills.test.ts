import { it } from "vitest";
import { sinksLoseNothing } from "../faults/sink-kills.ts";

it("a sink loses nothing and keeps the order through 20 kills of gateways, its target and the network", () =>
  sinksLoseNothing({ gateway: 4, target: 8, network: 8 }));
