import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { MaintainService, type MoveResponse, MoveStep } from "@tapedeck/proto/tapedeck/v1/maintain";

/** Takes a step in the move of a workspace to a shard that is not there, and gives the last answer. */
export async function moveStep(
  address: string,
  { workspace, step }: { readonly workspace: string; readonly step: "LEAVING" | "GONE" },
): Promise<MoveResponse | undefined> {
  const client = new Client(address, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("tapedeck-key", "test-key");
  const { path, requestSerialize, responseDeserialize } = MaintainService.move;
  const request = { workspace, step: MoveStep[`MOVE_STEP_${step}`], other: "two" };
  const responses = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata);
  let last: MoveResponse | undefined;
  for await (const response of responses as AsyncIterable<MoveResponse>) last = response;
  client.close();
  return last;
}
