package deps

import (
	_ "github.com/dlclark/regexp2"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/spf13/cobra"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "pgregory.net/rapid"
	_ "github.com/pelletier/go-toml/v2"
	_ "golang.org/x/term"
	_ "golang.org/x/text/unicode/norm"
)
