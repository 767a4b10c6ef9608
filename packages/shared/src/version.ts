/** The version of all programs here: they are built and released together. */
export const version = "0.1.0";
