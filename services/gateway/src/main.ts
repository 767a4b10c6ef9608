import { runService } from "@tapedeck/shared/service/lifecycle";
import { createLogger } from "@tapedeck/shared/service/logger";
import { settingsSources } from "@tapedeck/shared/service/settings";
import { readConfig } from "./config.ts";
import { startGateway } from "./gateway.ts";

const log = createLogger("gateway");

await runService(log, async () => {
  const gateway = await startGateway(readConfig(settingsSources(process.env)), log);
  gateway.failed.catch((error: unknown) => {
    log.fatal(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
    process.kill(process.pid, "SIGTERM");
  });
  return gateway;
});
