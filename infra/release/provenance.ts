/** Prints the build of a release as the predicate of SLSA provenance v1, from the workflow's environment. */

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws if a variable of GitHub Actions is missing: an incomplete provenance proves nothing. */
export function formatProvenance(env: Environment): object {
  const read = (name: string): string => {
    const value = env[name];
    if (!value) throw new Error(`${name} is missing: provenance is of a workflow's run`);
    return value;
  };
  const repository = `${read("GITHUB_SERVER_URL")}/${read("GITHUB_REPOSITORY")}`;
  const ref = read("GITHUB_REF");
  return {
    buildDefinition: {
      buildType: "https://actions.github.io/buildtypes/workflow/v1",
      externalParameters: { workflow: { ref, repository, path: ".github/workflows/release.yaml" } },
      internalParameters: { github: { event_name: read("GITHUB_EVENT_NAME") } },
      resolvedDependencies: [{ uri: `git+${repository}@${ref}`, digest: { gitCommit: read("GITHUB_SHA") } }],
    },
    runDetails: {
      builder: { id: `${read("GITHUB_SERVER_URL")}/${read("GITHUB_WORKFLOW_REF")}` },
      metadata: {
        invocationId: `${repository}/actions/runs/${read("GITHUB_RUN_ID")}/attempts/${read("GITHUB_RUN_ATTEMPT")}`,
      },
    },
  };
}

if (import.meta.main) console.log(JSON.stringify(formatProvenance(process.env), undefined, 2));
