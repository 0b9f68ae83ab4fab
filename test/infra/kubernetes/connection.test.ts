import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../../infra/kubernetes/connection.ts";
import { describeConnections } from "../connections.ts";

describeConnections("from source", { loadConnection, connectCluster });
