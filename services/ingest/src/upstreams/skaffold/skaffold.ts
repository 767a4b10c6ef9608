import { tap } from "@tapedeck/tap/skaffold/tap";
import type { Upstream } from "../../normalize/normalizer.ts";
import { reading } from "../../normalize/skaffold/normalizer.ts";

export const skaffold: Upstream = { name: "skaffold", tap, reading, livesInCommand: true };
