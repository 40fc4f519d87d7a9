package postgres

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/jackc/pgerrcode"
)

// TestErrorHelps checks that errors.json has codes of PostgreSQL, with a message and a fix.
func TestErrorHelps(t *testing.T) {
	t.Parallel()
	decoder := json.NewDecoder(bytes.NewReader(errorsJSON))
	decoder.DisallowUnknownFields()
	var table map[string]struct{ Name, Code, Message, Fix string }
	if err := decoder.Decode(&table); err != nil {
		t.Fatal(err)
	}
	for code, help := range table {
		if !regexp.MustCompile(`^[0-9A-Z]{5}$`).MatchString(code) || help.Name == "" || help.Message == "" || help.Fix == "" || help.Code != "" && help.Code != "invalid" {
			t.Errorf("the help of %s is %+v", code, help)
		}
	}
	for code, name := range map[string]string{
		pgerrcode.InvalidPassword: "invalid_password", pgerrcode.DiskFull: "disk_full", pgerrcode.SerializationFailure: "serialization_failure",
		pgerrcode.InvalidCatalogName: "invalid_catalog_name", pgerrcode.CharacterNotInRepertoire: "character_not_in_repertoire",
	} {
		if table[code].Name != name {
			t.Errorf("the help of %s is %+v", code, table[code])
		}
	}
}
