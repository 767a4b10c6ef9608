// For `tapedeck rebuild` on the server's machine, which asks query past the gateway.
export { maintainClient } from "../maintain-client.ts";
