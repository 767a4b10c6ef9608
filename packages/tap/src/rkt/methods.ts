import {
  InspectImageRequest,
  InspectPodRequest,
  ListImagesRequest,
  ListPodsRequest,
  PublicAPIService,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { type Entry, imageEntries, podEntries } from "@tapedeck/shared/rkt/entries";

/** How one part of the inventory is listed, and how one of its items is inspected. */
export type InventoryMethods = {
  readonly list: string;
  readonly listRequest: Uint8Array;
  readonly entries: (list: Uint8Array) => readonly Entry[] | undefined;
  readonly inspect: string;
  readonly inspectRequest: (id: string) => Uint8Array;
  /** The share of what both lists together may cost. Pods are many and change. */
  readonly share: number;
};

export const podMethods: InventoryMethods = {
  list: PublicAPIService.listPods.path,
  listRequest: ListPodsRequest.encode({ filters: [], detail: true }).finish(),
  entries: podEntries,
  inspect: PublicAPIService.inspectPod.path,
  inspectRequest: (id) => InspectPodRequest.encode({ id }).finish(),
  share: 0.8,
};

export const imageMethods: InventoryMethods = {
  list: PublicAPIService.listImages.path,
  listRequest: ListImagesRequest.encode({ filters: [], detail: true }).finish(),
  entries: imageEntries,
  inspect: PublicAPIService.inspectImage.path,
  inspectRequest: (id) => InspectImageRequest.encode({ id }).finish(),
  share: 0.2,
};

export const channels = ["pods", "images", "logs"] as const;
export type RktChannel = (typeof channels)[number];
