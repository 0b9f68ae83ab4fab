import { connectCluster } from "../../infra/cluster.ts";
import { loadConnection } from "../../infra/connection.ts";
import { describeConnections } from "./connections.ts";

describeConnections("from source", { loadConnection, connectCluster });
