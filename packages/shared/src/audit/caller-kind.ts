import { z } from "zod";

/**
 * What a caller in the audit log is. Tapedeck sets it by the way in which the caller came in, so that no name can imitate it:
 * a token of Tapedeck, one that a program holds, a person of the identity provider, an address without credentials, a user of
 * the server's own machine, or several callers that one entry counts.
 */
export const callerKinds = ["token", "machine", "person", "address", "local", "several"] as const;

export const callerKind = z.enum(callerKinds);

export type CallerKind = (typeof callerKinds)[number];
