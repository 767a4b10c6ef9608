import type { Upstream } from "../upstream.ts";
import { reading } from "./reading.ts";
import { tap } from "./tap.ts";

export const skaffold: Upstream = { name: "skaffold", tap, reading, livesInCommand: true };
