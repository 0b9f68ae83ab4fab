import { connectCluster } from "../../../infra/kubernetes/cluster.ts";
import { loadConnection } from "../../../infra/kubernetes/connection.ts";
import { describeConnections } from "../connections.ts";

describeConnections("from source", { loadConnection, connectCluster });
