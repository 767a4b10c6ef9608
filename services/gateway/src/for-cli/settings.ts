// For `tapedeck up`, which checks all settings before it starts the services, and for the page that lists them.
export { gatewaySettings } from "../config.ts";
export type { ConfiguredSink } from "../sinks/settings.ts";
