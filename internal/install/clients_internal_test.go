package install

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestClientTable checks that clients.jsonc has no member that the types do not have, and
// that each client has what a change and its notes need.
func TestClientTable(t *testing.T) {
	t.Parallel()
	decoder := json.NewDecoder(bytes.NewReader(standardizeJSON(clientsJSON)))
	decoder.DisallowUnknownFields()
	var table clientTable
	if err := decoder.Decode(&table); err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Clients {
		own := map[string]bool{"claude-desktop": true, "claude-code": true, "vscode": true, "cline": true}[c.ID]
		if c.ID == "" || c.Title == "" || c.Restart == "" || c.Form.Key == "" || c.Form.Shape.URL == "" || own == (c.Dir != "") || own == (c.File != "") {
			t.Errorf("the client %+v is incomplete", c)
		}
	}
	for _, c := range table.HookClients {
		if c.ID == "" || c.Title == "" || c.Next == "" || c.Dir == "" || c.File == "" || c.Project == "" || len(c.Reports) == 0 || c.Element == "" {
			t.Errorf("the client with hooks %+v is incomplete", c)
		}
	}
	for _, c := range table.ManualClients {
		if c.Title == "" || len(c.Aliases) == 0 || c.File == "" || (c.Key == "") != (c.Title == "Goose") {
			t.Errorf("the client %+v is incomplete", c)
		}
	}
}
