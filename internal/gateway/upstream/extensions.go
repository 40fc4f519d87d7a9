package upstream

import (
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// The identifiers of the extensions of MCP that the gateway carries.
const (
	ExtensionApps   = "io.modelcontextprotocol/ui"
	ExtensionSkills = "io.modelcontextprotocol/skills"
	ExtensionTasks  = "io.modelcontextprotocol/tasks"
)

// Extensions holds the extensions that a client or a server declares, as far as the gateway
// carries them, with the settings that the gateway knows.
type Extensions map[string]json.RawMessage

// UnmarshalJSON implements json.Unmarshaler. It ignores other extensions, other settings and
// invalid declarations, because they must not prevent the use of the rest.
func (e *Extensions) UnmarshalJSON(text []byte) error {
	*e = nil
	declared, err := jsonrpc.Members(text)
	if err != nil {
		return nil //nolint:nilerr // an invalid declaration declares nothing
	}
	for id, kept := range map[string]func(map[string]json.RawMessage) json.RawMessage{
		ExtensionApps: appsSettings, ExtensionSkills: skillsSettings,
		ExtensionTasks: func(map[string]json.RawMessage) json.RawMessage { return json.RawMessage(`{}`) },
	} {
		if settings, err := jsonrpc.Members(declared[id]); err == nil {
			if *e == nil {
				*e = Extensions{}
			}
			(*e)[id] = kept(settings)
		}
	}
	return nil
}

// pageType is the media type of the pages of MCP Apps.
const pageType = "text/html;profile=mcp-app"

func appsSettings(settings map[string]json.RawMessage) json.RawMessage {
	var types []string
	if json.Unmarshal(settings["mimeTypes"], &types) == nil && slices.Contains(types, pageType) {
		return json.RawMessage(`{"mimeTypes":["` + pageType + `"]}`)
	}
	return json.RawMessage(`{}`)
}

const directoryRead = `{"directoryRead":true}`

func skillsSettings(settings map[string]json.RawMessage) json.RawMessage {
	if string(settings["directoryRead"]) == "true" {
		return json.RawMessage(directoryRead)
	}
	return json.RawMessage(`{}`)
}

// Has reports whether an extension is declared.
func (e Extensions) Has(id string) bool { return e[id] != nil }

// ListsDirectories reports whether the server lists the directories of its skills.
func (e Extensions) ListsDirectories() bool { return string(e[ExtensionSkills]) == directoryRead }

// listCapabilities are the capabilities that a modern server gets with the requests of its
// lists, because it may list less for clients without them.
const listCapabilities = `{"elicitation":{"form":{},"url":{}},"extensions":{"` + ExtensionApps + `":{"mimeTypes":["` + pageType + `"]},"` +
	ExtensionSkills + `":{},"` + ExtensionTasks + `":{}},"roots":{},"sampling":{}}`
