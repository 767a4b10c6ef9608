/**
 * What a loop waited for at each moment: each wait with the whole millisecond of its end, since the loop's "In
 * Progress". A wait begins where the one before ends. The messages it was read from come first: lines of the recording's
 * `v1-events.ndjson` from the loop's "In Progress" to its end, and for rendering two lines of its `v2-events.ndjson`.
 */
export type LabelledWaits = readonly [messages: string, waits: string];

/**
 * The waits of each loop of every recording, in order; a recording that is not here has no loop. They were read from the
 * list of messages that `labelled-loops.ts` was read from: "In Progress" begins a wait, the next message about the same
 * step ends it, and moments in between are "other". A check begins inside its deploy and ends with it. What begins and
 * ends in the same millisecond is left out, and a loop without an end has no waits. The loop waited, among builds beside
 * each other, for the one that ended last; until that one began, for the last one that had ended by then (24, 24b). A
 * person wrote down those of 24 and 25. A script whose only input was that list wrote down the others; a person read them
 * beside it, but for the loops of 15-*, which are alike.
 */
export const labelledWaits: Readonly<Record<string, readonly LabelledWaits[]>> = {
  "01-dev-success-3-artifacts-5-iterations": [
    ["v1 2-11, v2 64 70", "other 2, build worker 41, build web 79, build api 116, render 118, deploy 176, other 177"],
    ["v1 12-17, v2 126 132", "build web 53, other 55, render 57, deploy 122"],
    ["v1 18-25, v2 191 197", "other 1, build worker 57, build api 105, other 107, render 109, deploy 177"],
    ["v1 26-29, v2 222 228", "render 1, deploy 62"],
    ["v1 30-35, v2 273 279", "other 3, build web 56, other 58, render 60, deploy 141"],
  ],
  "03-first-build-fails-process-exits": [["v1 2-9", "other 3, build worker 449, build web 450"]],
  "04-deploy-failure-then-recovery": [
    [
      "v1 2-11, v2 49 52",
      "other 1, build worker 49, build api 102, build web 151, other 152, render 153, deploy 221, other 224",
    ],
    ["v1 12-17, v2 101 104", "other 1, build web 42, other 44, render 45, other 46, deploy 106"],
    ["v1 18-23, v2 144 147", "build web 53, other 54, render 56, deploy 132"],
    ["v1 24-25, v2 168 171", ""],
  ],
  "04b-first-deploy-fails-process-exits": [
    ["v1 2-11, v2 49 52", "other 1, build worker 46, build web 88, build api 127, other 128, render 129, deploy 186"],
  ],
  "05-control-api-auto-off": [
    ["v1 2-11, v2 93 102", "other 2, build worker 45, build web 103, build api 159, render 164, deploy 242, other 244"],
    ["v1 12-15", "build web 55, other 58"],
    ["v1 16-19, v2 184 193", "render 1, other 2, deploy 76"],
    ["v1 20-23", "build api 60, other 62"],
    ["v1 24-27, v2 262 271", "render 1, deploy 73"],
    ["v1 28-33, v2 332 341", "other 2, build api 45, other 47, render 52, deploy 123"],
    ["v1 34-37", "build api 41, other 42"],
    ["v1 38-41, v2 412 421", "render 1, deploy 88"],
    ["v1 42-47, v2 484 493", "build web 36, other 37, render 39, deploy 98"],
  ],
  "07-two-processes-same-port/process-a": [
    ["v1 2-11, v2 49 52", "other 3, build worker 49, build web 93, build api 138, render 140, deploy 213, other 214"],
    ["v1 12-17, v2 101 104", "build web 48, other 50, render 52, other 53, deploy 141"],
  ],
  "07-two-processes-same-port/process-b": [
    ["v1 2-5, v2 26 29", "other 10, render 11, deploy 89, other 90"],
    ["v1 6-11, v2 78 81", "build api 55, other 56, render 59, deploy 146"],
    ["v1 12-15, v2 112 115", "other 3, render 4, deploy 76"],
  ],
  "08-handle-custom-events": [
    [
      "v1 2-11, v2 49 52",
      "other 2, build worker 39, build web 75, build api 111, other 112, render 114, other 115, deploy 175, other 176",
    ],
    ["v1 26-31, v2 115 118", "build web 41, other 42, render 43, other 44, deploy 106"],
  ],
  "08b-handle-crash-v1-devloop-failed-without-err": [
    [
      "v1 2-11, v2 49 52",
      "other 1, build worker 53, build api 93, build web 136, other 137, render 138, other 140, deploy 210, other 213",
    ],
  ],
  "08c-handle-crash-v2-status-check-after-auto-toggle": [
    [
      "v1 2-11, v2 49 52",
      "other 2, build worker 44, other 45, build web 84, build api 123, render 124, deploy 213, other 216",
    ],
  ],
  "09-error-responses": [
    [
      "v1 2-11, v2 49 52",
      "other 2, build worker 44, build web 86, build api 125, other 126, render 130, deploy 214, other 216",
    ],
  ],
  "10-status-check-port-forward-sync-app-logs": [
    [
      "v1 2-18, v2 49 52",
      "other 2, build worker 47, build web 91, build api 132, other 133, render 135, other 136, deploy 200, check 3278, other 4290",
    ],
    ["v1 19-22", "sync web 39"],
    ["v1 23-35", "sync web 2065"],
    ["v1 36-48, v2 142 145", "build web 42, other 43, render 44, other 47, deploy 108, check 3154, other 4160"],
    ["v1 49-58, v2 205 208", "build api 51, other 52, render 57, other 58, deploy 116, check 1174, other 1175"],
    ["v1 59-71, v2 256 259", "build api 57, other 58, render 59, deploy 143, check 3193, other 4198"],
  ],
  "10b-first-status-check-times-out": [
    [
      "v1 2-21, v2 49 52",
      "other 2, build worker 73, build web 114, build api 171, other 172, render 174, deploy 245, check 21252",
    ],
  ],
  "15-disconnect-after-replay-is-safe": [
    ["v1 2-11", "build worker 73, build web 144, build api 222, other 225, deploy 354, other 355"],
    ["v1 12-17", "build api 75, other 79, deploy 227"],
    ["v1 18-23", "build api 68, other 71, deploy 195"],
  ],
  "15-drops-curl": [
    ["v1 2-11", "build worker 73, build web 143, build api 218, other 219, deploy 348, other 350"],
    ["v1 12-17", "build worker 162, other 164, deploy 296"],
    ["v1 18-23", "build worker 162, other 164, deploy 282"],
    ["v1 24-29", "build worker 182, other 183, deploy 304"],
    ["v1 30-35", "build worker 197, other 199, deploy 203, other 204"],
  ],
  "15-drops-grpc-idle": [
    ["v1 2-11", "other 1, build worker 72, build web 144, build api 233, other 239, deploy 379, other 381"],
    ["v1 12-17", "other 1, build worker 75, other 79, deploy 210"],
    ["v1 18-23", "build worker 88, other 95, deploy 225"],
    ["v1 24-29", "build worker 86, other 91, deploy 222, other 223"],
    ["v1 30-35", "build worker 71, other 74, deploy 216"],
    ["v1 36-41", "build worker 68, other 72, deploy 214"],
    ["v1 42-47", "build worker 76, other 85, deploy 213"],
    ["v1 48-53", "build worker 83, other 91, deploy 252"],
    ["v1 54-59", "build worker 78, other 85, deploy 212"],
    ["v1 60-65", "build worker 70, other 78, deploy 198, other 199"],
    ["v1 66-71", "build worker 74, other 80, deploy 208"],
    ["v1 72-77", "build worker 78, other 87, deploy 240"],
    ["v1 78-83", "build worker 72, other 82, deploy 212"],
    ["v1 84-89", "build api 78, other 88, deploy 248"],
  ],
  "15-drops-grpc-live": [
    ["v1 2-11", "build worker 86, build web 150, build api 219, other 222, deploy 338, other 339"],
    ["v1 12-17", "build worker 117, other 121, deploy 257"],
    ["v1 18-23", "build worker 92, other 95, deploy 210"],
    ["v1 24-29", "build worker 106, other 111, deploy 232"],
    ["v1 30-35", "build worker 119, other 123, deploy 239"],
    ["v1 36-41", "build worker 104, other 109, deploy 238"],
    ["v1 42-47", "other 1, build worker 107, other 113, deploy 271"],
    ["v1 48-53", "build worker 98, other 103, deploy 263"],
    ["v1 54-59", "build worker 129, other 142, deploy 281"],
    ["v1 60-65", "build worker 127, other 134, deploy 291"],
    ["v1 66-71", "build worker 127, other 137, deploy 304"],
    ["v1 72-77", "build worker 164, other 173, deploy 342"],
    ["v1 78-83", "build worker 167, other 175, deploy 349"],
    ["v1 84-89", "build api 181, other 192, deploy 384"],
  ],
  "15-drops-http-idle": [
    ["v1 2-11", "build worker 71, build web 141, build api 209, other 211, deploy 336, other 338"],
    ["v1 12-17", "build worker 69, other 72, deploy 195"],
    ["v1 18-23", "build worker 72, other 75, deploy 197"],
    ["v1 24-29", "build worker 85, other 88, deploy 206"],
    ["v1 30-35", "build worker 67, other 72, deploy 197"],
    ["v1 36-41", "build worker 72, other 77, deploy 197"],
    ["v1 42-47", "build worker 86, other 94, deploy 223"],
    ["v1 48-53", "build worker 78, other 88, deploy 224"],
    ["v1 54-59", "build worker 70, other 76, deploy 220"],
    ["v1 60-65", "build worker 96, other 105, deploy 240"],
    ["v1 66-71", "build worker 72, other 79, deploy 208"],
    ["v1 72-77", "other 2, build worker 72, other 77, deploy 200"],
    ["v1 78-83", "build worker 62, other 69, deploy 181"],
    ["v1 84-89", "build api 67, other 73, deploy 201"],
  ],
  "15-drops-http-live": [
    ["v1 2-11", "build worker 69, build web 140, build api 233, other 237, deploy 396, other 397"],
    ["v1 12-15", "other 2, build worker 174, other 175"],
  ],
  "15-hang-disconnect-during-replay": [
    ["v1 2-11", "build worker 81, build web 155, build api 227, other 233, deploy 368, other 370"],
    ["v1 12-17", "other 2, build worker 168, other 172, deploy 299"],
    ["v1 18-23", "other 1, build api 72, other 76, deploy 198"],
    ["v1 24-24", ""],
  ],
  "15-hang-reader-stops-reading": [
    ["v1 2-11", "build worker 111, build web 222, build api 339, other 346, deploy 548, other 551"],
    ["v1 12-17", "other 2, build worker 9047, other 9051, deploy 9176"],
    ["v1 18-23", "other 1, build api 76, other 81, deploy 211"],
  ],
  "15-http-disconnect-during-replay": [
    ["v1 2-11", "other 1, build worker 77, build web 159, build api 243, other 248, deploy 384, other 386"],
    ["v1 12-17", "build worker 163, other 168, deploy 299"],
  ],
  "15-joining-while-busy-grpc": [
    ["v1 2-11", "build worker 66, build web 128, other 129, build api 195, other 197, deploy 314, other 316"],
    ["v1 12-17", "build worker 188, other 189, deploy 320"],
    ["v1 18-19", ""],
  ],
  "15-joining-while-busy-http": [
    ["v1 2-11", "other 5, build worker 98, build web 169, build api 240, other 242, deploy 391, other 393"],
    ["v1 12-17", "build worker 264, other 267, deploy 390"],
    ["v1 18-19", ""],
  ],
  "15-joining-while-busy-one-each-grpc": [
    ["v1 2-11", "build worker 65, build web 129, build api 193, other 194, deploy 314, other 317"],
    ["v1 12-17", "build worker 173, other 175, deploy 299"],
    ["v1 18-23", "build worker 189, other 191, deploy 304"],
    ["v1 24-29", "build worker 159, other 160, deploy 273"],
    ["v1 30-35", "build worker 157, other 158, deploy 278"],
    ["v1 36-41", "build worker 161, other 162, deploy 285"],
    ["v1 42-47", "build worker 162, other 164, deploy 279"],
    ["v1 48-53", "build worker 185, other 186, deploy 302, other 303"],
    ["v1 54-59", "build worker 227, other 228, deploy 349"],
    ["v1 60-61", ""],
  ],
  "15-joining-while-busy-one-each-http": [
    ["v1 2-11", "other 3, build worker 89, build web 159, build api 223, other 225, deploy 354, other 355"],
    ["v1 12-17", "build worker 187, other 188, deploy 304"],
    ["v1 18-23", "build worker 331, other 332, deploy 484"],
    ["v1 24-29", "build worker 253, other 255, deploy 390"],
    ["v1 30-35", "build worker 239, other 241, deploy 362"],
    ["v1 36-41", "build worker 289, other 291, deploy 419"],
    ["v1 42-47", "build worker 281, other 282, deploy 405"],
    ["v1 48-53", "build worker 355, other 356, deploy 482"],
    ["v1 54-59", "build worker 351, other 357, deploy 487"],
    ["v1 60-65", "build worker 354, other 358, deploy 485"],
    ["v1 66-71", "build worker 322, other 324, deploy 439, other 440"],
    ["v1 72-77", "build worker 337, other 339, deploy 458"],
    ["v1 78-83", "build worker 328, other 332, deploy 455"],
  ],
  "16-experiments": [
    ["v1 2-11", "build worker 65, build web 127, build api 191, other 193, deploy 305, other 307"],
    ["v1 12-15", "build worker 114"],
  ],
  "17-invalid-utf8-in-build-output": [
    ["v1 2-11, v2 36 39", "other 2, build worker 49, build api 108, build web 155, render 157, deploy 230, other 232"],
    ["v1 12-17", "build worker 56, other 59, deploy 145"],
    ["v1 18-23", "other 1, build api 48, other 50, deploy 113"],
    ["v1 24-24", ""],
  ],
  "20-old-v1.39.18": [
    ["v1 2-11", "build worker 57, build web 103, build api 156, other 158, deploy 294, other 295"],
    ["v1 12-17", "build web 54, other 56, deploy 170"],
    ["v1 18-21", "build api 38, other 39"],
    ["v1 22-27", "build api 53, other 56, deploy 163"],
  ],
  "24-dev-concurrent-builds": [
    // web, api and worker begin together; web ends last. In the second loop it is api, in the third web again.
    ["v1 2-11, v2 37 40", "build web 665, other 668, render 672, other 673, deploy 951, other 962"],
    ["v1 12-19, v2 94 97", "build api 777, other 788, render 790, other 792, deploy 1133"],
    ["v1 20-27", "build web 1230, other 1231"],
    ["v1 28-33, v2 173 176", "build worker 432, other 436, render 437, other 441, deploy 802"],
  ],
  "24b-dev-two-builds-at-a-time": [
    // worker ends last. It could begin when api had ended, and in the second loop when web had.
    ["v1 2-11, v2 37 40", "build api 634, build worker 1027, other 1030, render 1032, deploy 1235, other 1237"],
    [
      "v1 12-21, v2 103 106",
      "build web 294, build worker 788, other 791, render 792, other 794, deploy 1192, other 1193",
    ],
  ],
  "25-dev-test-fails": [
    [
      "v1 2-13, v2 57 60",
      "other 1, build worker 73, build web 225, build api 382, other 384, test 399, render 403, other 404, deploy 850, other 854",
    ],
    ["v1 14-19", "other 8, build web 182, other 187, test 200"],
    ["v1 20-27, v2 149 152", "build web 393, other 398, test 402, render 407, other 409, deploy 1006"],
  ],
  "26-dev-sync-fails": [
    [
      "v1 2-11, v2 35 38",
      "other 5, build worker 718, build web 1506, build api 2630, render 2636, deploy 3759, other 3780",
    ],
    ["v1 12-25", "sync web 4597"],
    ["v1 26-29", "sync web 1121, other 1122"],
    ["v1 30-36", "sync web 1624"],
  ],
  "27-dev-build-fails-beside-others": [
    [
      "v1 2-11, v2 37 40",
      "other 1, build web 3, build worker 1433, other 1435, render 1437, other 1440, deploy 2188, other 2193",
    ],
    ["v1 12-19", "build web 4, build worker 4141, other 4142"],
    ["v1 20-29, v2 142 145", "build web 1, build api 1156, render 1157, deploy 1931"],
  ],
  "31-dev-compilers-and-tests-fail": [
    [
      "v1 2-13, v2 55 58",
      "other 64, build worker 674, build api 2864, build web 6739, other 6741, test 7672, other 7673, render 7690, other 7697, deploy 8682, other 8714",
    ],
    ["v1 14-17", "other 13, build api 396, other 399"],
    ["v1 18-23, v2 133 136", "other 10, build api 1650, other 1665, render 1667, deploy 2410"],
    ["v1 24-27", "other 6, build web 4055, other 4069"],
    ["v1 28-31, v2 193 196", "other 58, render 70, deploy 510"],
    ["v1 32-37", "other 41, build worker 529, other 538, test 1199"],
    ["v1 38-45, v2 276 279", "other 18, build worker 459, other 467, test 1182, render 1185, deploy 1544"],
  ],
};
