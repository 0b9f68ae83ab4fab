/** The parts of its machine that a process uses: entries pass `systemClock`, which leaves the rest to Node.js. */
import type { CertificateOptions, Certificates } from "./certs/act/generate.ts";
import type { Clock } from "./clock.ts";
import type { OpenRequest } from "./http.ts";
import type { Connection, ConnectionSource } from "./kubernetes/connection.ts";
import type { Tracer } from "./tracing/tracer.ts";

export interface Machine extends Clock {
  /** Finds the API server; by default from kubeconfig files or the pod's ServiceAccount. */
  readonly connect?: (source: ConnectionSource) => Promise<Connection>;
  /** Opens requests to anything but the API server; by default over the network. */
  readonly open?: OpenRequest;
  /** Reads a file as text; by default from the disk. */
  readonly read?: (path: string) => Promise<string>;
  /** Receives whole lines of the log; standard output by default. */
  readonly write?: (line: string) => void;
  /** Makes keys and certificates; by default Node.js does. */
  readonly generate?: (options: CertificateOptions) => Promise<Certificates>;
  /** Records spans; by default the standard variables of OpenTelemetry say where they are sent, if anywhere. */
  readonly tracer?: Tracer;
}
