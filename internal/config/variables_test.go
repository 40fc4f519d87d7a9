package config_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/config"
)

// sampleValues returns a value that is not the default for each variable of a setting.
func sampleValues() map[string]string {
	return map[string]string{
		"GUIDEWAY_LISTEN": "127.0.0.1:4000", "GUIDEWAY_TOOLSETS": "steps", "GUIDEWAY_ANSWERS": "text", "GUIDEWAY_ALLOW_ORIGINS": "https://example.com",
		"GUIDEWAY_ALLOWED_HOSTS": "guideway.example.com", "GUIDEWAY_DATA_DIR": "/d", "WORKRAIL_DATA_DIR": "/d", "WORKRAIL_STORAGE_PATH": "/d",
		"GUIDEWAY_TOKEN_FILE": "/t", "GUIDEWAY_STORE": "files", "GUIDEWAY_JOURNAL_KEY_FILE": "/k", "GUIDEWAY_JOURNAL_HEADS_DIR": "/h",
		"GUIDEWAY_GATES_APPROVAL": "human", "GUIDEWAY_CONTEXT_COMPRESSION": "advanced", "WORKRAIL_CONTEXT_COMPRESSION": "advanced",
		"GUIDEWAY_CLIENT_HOOKS_ON_ERROR": "deny",
		"GUIDEWAY_CONTEXT_TOKEN_LIMIT":   "16000", "GUIDEWAY_CONTEXT_THRESHOLD": "70", "GUIDEWAY_CONTEXT_PERSONAL_DATA": "true", "GUIDEWAY_EMBEDDINGS_URL": "https://example.com/v1",
		"GUIDEWAY_EMBEDDINGS_MODEL": "small", "GUIDEWAY_CHECKPOINT_AUTO_SAVE": "false", "WORKRAIL_CHECKPOINT_AUTO_SAVE": "false",
		"GUIDEWAY_CHECKPOINTS_READ_ONLY": "true", "GUIDEWAY_MAX_CHECKPOINTS": "7", "WORKRAIL_MAX_CHECKPOINTS": "7",
		"GUIDEWAY_MAX_CHECKPOINT_SIZE": "1MB", "GUIDEWAY_MAX_SESSION_SIZE": "20MB", "GUIDEWAY_MAX_TOTAL_SIZE": "3GB",
		"GUIDEWAY_MAX_CONTEXT_SIZE": "1MB", "GUIDEWAY_CHECKPOINTS_WARN_AT": "50", "GUIDEWAY_CHECKPOINTS_CLEAN_AT": "95",
		"GUIDEWAY_CHECKPOINT_RETENTION": "9d", "GUIDEWAY_CHECKPOINTS_DIR": "/c", "GUIDEWAY_ENCRYPTION": "key-file", "WORKRAIL_ENCRYPTION": "true",
		"GUIDEWAY_ENCRYPTION_KEY_FILE": "/e", "GUIDEWAY_ENCRYPTION_PASSPHRASE_FILE": "/p", "GUIDEWAY_WORKFLOW_PATHS": "/w",
		"WORKFLOW_STORAGE_PATH": "/w", "GUIDEWAY_CACHE_TTL": "9s", "CACHE_TTL": "9000", "GUIDEWAY_INCLUDE_BUNDLED": "false",
		"GUIDEWAY_INCLUDE_PLUGINS": "false", "WORKFLOW_INCLUDE_PLUGINS": "false", "GUIDEWAY_INCLUDE_USER": "false", "GUIDEWAY_INCLUDE_PROJECT": "false", "WORKFLOW_INCLUDE_BUNDLED": "false",
		"WORKFLOW_INCLUDE_USER": "false", "WORKFLOW_INCLUDE_PROJECT": "false", "GUIDEWAY_SOURCE_HOSTS": "git.example.com",
		"GUIDEWAY_SYNC_INTERVAL": "9m", "WORKFLOW_GIT_SYNC_INTERVAL": "9", "GUIDEWAY_REGISTRY_TIMEOUT": "9s", "WORKFLOW_REGISTRY_TIMEOUT": "9000",
		"GUIDEWAY_SOURCE_CACHE": "/s", "WORKRAIL_CACHE_DIR": "/s", "GUIDEWAY_SOURCE_TRUST": "project=review",
		"GUIDEWAY_GATEWAY_EXPOSURE": "search", "GUIDEWAY_GATEWAY_PROJECT": "web", "GUIDEWAY_GATEWAY_CALLS_PER_MINUTE": "9", "GUIDEWAY_MACHINES_WORKERS": "9", "GUIDEWAY_MACHINES_REQUESTS": "9",
		"GUIDEWAY_GATEWAY_HEALTH": "9s", "GUIDEWAY_GATEWAY_QUESTION_TIME": "9h", "GUIDEWAY_GATEWAY_APPROVAL_TIME": "9m", "GUIDEWAY_GATEWAY_LARGE_RESULT": "100KB", "GUIDEWAY_RECORD_REQUESTS": "false", "GUIDEWAY_RECORD_BODIES": "true", "GUIDEWAY_RECORD_MAX_BODY": "9kB",
		"GUIDEWAY_GATEWAY_CLIENT_METADATA": "https://example.com/client.json",
		"GUIDEWAY_RECORD_RETENTION":        "9d", "GUIDEWAY_RECORD_MAX_SIZE": "9MB", "GUIDEWAY_LOG_LEVEL": "debug", "WORKRAIL_LOG_LEVEL": "DEBUG",
		"GUIDEWAY_PUBLIC_URL": "https://guideway.example.com", "GUIDEWAY_USER": "ada", "GUIDEWAY_IDENTITY_ISSUER": "https://id.example.com", "GUIDEWAY_IDENTITY_CLIENT_ID": "guideway",
		"GUIDEWAY_IDENTITY_CLIENT_SECRET_FILE": "/run/secrets/id", "GUIDEWAY_IDENTITY_SCOPES": "groups", "GUIDEWAY_IDENTITY_USER_CLAIM": "email", "GUIDEWAY_IDENTITY_ROLES_CLAIM": "roles",
		"GUIDEWAY_IDENTITY_ROLES": "admin=platform,viewer=*", "GUIDEWAY_IDENTITY_RESOURCE": "https://guideway.example.com", "GUIDEWAY_IDENTITY_RESOURCE_SCOPE": "mcp", "GUIDEWAY_PROJECTS_MEMBERS": "/src/shop=ada",
		"GUIDEWAY_LOG_FORMAT": "json", "WORKRAIL_LOG_FORMAT": "json",
	}
}

// Each variable sets its setting, and so does each alias of another system.
func TestVariablesSetSettings(t *testing.T) {
	t.Parallel()
	plain := map[string]string{}
	for _, v := range loadConfig(t, config.Options{Getenv: environment(), GOOS: "linux", Dir: "/work"}).Values() {
		plain[v.Name] = v.Text
	}
	for _, s := range config.Settings() {
		names := []string{s.Env}
		names = append(names, s.Aliases...)
		for _, name := range names {
			sample, ok := sampleValues()[name]
			if !ok {
				t.Errorf("the variable %s has no sample value", name)
				continue
			}
			c := loadConfig(t, config.Options{Getenv: environment(name, sample), GOOS: "linux", Dir: "/work"})
			values := c.Values()
			v := values[slices.IndexFunc(values, func(v config.Value) bool { return v.Name == s.Name })]
			if v.Origin != (config.Origin{Kind: config.OriginEnv, Name: name}) || v.Text == plain[s.Name] {
				t.Errorf("%s=%s: %s is %q, from %s", name, sample, s.Name, v.Text, v.Origin)
			}
		}
	}
}

// The variables of sources define repositories and a registry, under the names of Guideway
// and of WorkRail.
func TestSourceVariables(t *testing.T) {
	t.Parallel()
	type source struct{ Git, Branch, Registry, Key string }
	for name, c := range map[string]struct {
		env  []string
		want []source
	}{
		"repositories":              {[]string{"GUIDEWAY_GIT_REPOS", "https://github.com/a/b#next,https://github.com/c/d"}, []source{{Git: "https://github.com/a/b", Branch: "next"}, {Git: "https://github.com/c/d"}}},
		"repositories, by the seed": {[]string{"WORKFLOW_GIT_REPOS", `[{"repositoryUrl":"https://github.com/a/b","branch":"next"}]`}, []source{{Git: "https://github.com/a/b", Branch: "next"}}},
		"one repository":            {[]string{"WORKFLOW_GIT_REPO_URL", "https://github.com/a/b", "WORKFLOW_GIT_REPO_BRANCH", "next"}, []source{{Git: "https://github.com/a/b", Branch: "next"}}},
		"registry":                  {[]string{"GUIDEWAY_REGISTRY_URL", "https://r.example.com", "GUIDEWAY_REGISTRY_KEY", "k", "GUIDEWAY_REGISTRY_ALLOW_PRIVATE", "true"}, []source{{Registry: "https://r.example.com", Key: "k"}}},
		"registry, by the seed":     {[]string{"WORKFLOW_REGISTRY_URL", "https://r.example.com", "WORKFLOW_REGISTRY_API_KEY", "k"}, []source{{Registry: "https://r.example.com", Key: "k"}}},
	} {
		var got []source
		for _, s := range loadConfig(t, config.Options{Getenv: environment(c.env...), GOOS: "linux", Dir: "/work"}).Sources {
			got = append(got, source{s.Git, s.Branch, s.Registry, s.Token})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
