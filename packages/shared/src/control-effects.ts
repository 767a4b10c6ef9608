/**
 * The answer to a control call waits at most this long, in ms, until what the call has changed is observed, recorded and in the
 * tables. Each process on the way uses what those before it have left.
 */
export const maxEffectMs = 2_000;

/**
 * Method of a ControlCall that changes nothing: the tap (vagrant) polls the jobs and, if the job whose id is the request (UTF-8)
 * is over, reads its output to the end. The recorder neither records nor queues it.
 */
export const observeMethod = "/tapedeck.v1.Recorder/ObserveJob";
