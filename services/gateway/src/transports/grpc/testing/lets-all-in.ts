import { fromUnknown } from "@tapedeck/shared/errors/errors";
import { everyone } from "../../../auth/authenticator.ts";
import type { GrpcServerOptions } from "../server.ts";

/** For tests of services that have nothing to do with who calls. */
export const letsAllIn: GrpcServerOptions = { authenticate: everyone("default"), failed: fromUnknown };
