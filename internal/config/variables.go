package config

// Variable is an environment variable that is no setting: it is a secret, or
// stands for something that a file of settings says in more detail.
type Variable struct {
	Name    string
	Aliases []string
	Usage   string
}

// Variables describes every variable that is read besides those of Settings.
func Variables() []Variable {
	list := []Variable{
		{EnvConfig, nil, "The configuration file, in place of guideway.json in the configuration directory."},
		{EnvPassphrase, nil, "The passphrase that checkpoints are encrypted with."},
		{EnvEmbeddingsKey, nil, "The key for the service of embeddings."},
		{"GUIDEWAY_TOKEN", nil, "The token that guideway connect shows to the server."},
		{"GUIDEWAY_MODEL", nil, "The model of agent machines for every level: openai:NAME, anthropic:NAME or scripted:FILE."},
		{"GUIDEWAY_MODEL_BASE", nil, "The model for the level base."},
		{"GUIDEWAY_MODEL_SMART", nil, "The model for the level smart."},
		{"GUIDEWAY_MODEL_FAST", nil, "The model for the level fast."},
		{"OPENAI_API_KEY", nil, "The key for models of openai:NAME."},
		{"OPENAI_BASE_URL", nil, "The address of another service that speaks OpenAI's API."},
		{"ANTHROPIC_API_KEY", nil, "The key for models of anthropic:NAME."},
		{"ANTHROPIC_BASE_URL", nil, "The address of another service that speaks Anthropic's API."},
	}
	list = append(list, sourceVariables()...)
	for _, each := range []struct{ name, usage string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "Where traces are sent, by OTLP over HTTP; off without an endpoint."},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "The same for traces alone, with its path."},
		{"OTEL_EXPORTER_OTLP_HEADERS", "Headers that are sent along, such as a key."},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "The same for traces alone."},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "How long an export may take, in milliseconds."},
		{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "The same for traces alone."},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json is the one that there is."},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "The same for traces alone."},
		{"OTEL_TRACES_EXPORTER", "none turns traces off."},
		{"OTEL_TRACES_SAMPLER", "Which calls are traced where the caller has not decided."},
		{"OTEL_TRACES_SAMPLER_ARG", "The share of them."},
		{"OTEL_BSP_SCHEDULE_DELAY", "How long spans wait to be sent together, in milliseconds."},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "How many spans may wait."},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "How many spans are sent together."},
		{"OTEL_SERVICE_NAME", "The name that traces are known by."},
		{"OTEL_RESOURCE_ATTRIBUTES", "What else is told of this process."},
		{"OTEL_SDK_DISABLED", "true turns traces off."},
		{"NO_COLOR", "Any value turns colors off."},
	} {
		list = append(list, Variable{Name: each.name, Usage: each.usage})
	}
	return list
}

// sourceVariables are those of sources.
func sourceVariables() []Variable {
	return []Variable{
		{
			EnvGitRepos,
			[]string{"WORKFLOW_GIT_REPOS", "WORKFLOW_GIT_REPO_URL"},
			"Repositories of workflows, lowest precedence first: addresses with commas between them, or a list as JSON.",
		},
		{"WORKFLOW_GIT_REPO_BRANCH", nil, "The branch of WORKFLOW_GIT_REPO_URL."},
		{EnvRegistryURL, []string{"WORKFLOW_REGISTRY_URL"}, "Address of a registry of workflows."},
		{EnvRegistryKey, []string{"WORKFLOW_REGISTRY_API_KEY"}, "Key for the registry of that address."},
		{EnvRegistryPrivate, nil, "Whether the registry of that address may be in a private network: true or 1."},
		{"GITHUB_TOKEN", nil, "Token for repositories at github.com."},
		{"GITLAB_TOKEN", nil, "Token for repositories at gitlab.com."},
		{"BITBUCKET_TOKEN", nil, "Token for repositories at bitbucket.org."},
		{
			"GIT_<HOST>_TOKEN",
			[]string{"WORKFLOW_GIT_AUTH_TOKEN", "GIT_TOKEN"},
			"Token for the repositories of another host, such as GIT_GIT_COMPANY_COM_TOKEN for git.company.com.",
		},
	}
}
