package backup

import (
	"errors"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// TestCheck checks which archives do not fit a machine.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, store string
		change      func(m *manifest)
		want, fix   string
	}{
		{name: "fits", store: config.StoreSQLite, change: func(*manifest) {}},
		{name: "files", store: config.StoreFiles, change: func(*manifest) {}},
		{name: "other kind", store: "postgres://db.example/x", change: func(*manifest) {}, want: "a sqlite store, and the settings select postgres://db.example/x", fix: "--store sqlite"},
		{name: "newer tables", store: config.StoreSQLite, change: func(m *manifest) { m.Stores[storeRuns] = rows.Copied{Schema: 99} }, want: "schema 99", fix: "use Guideway v9.9.9"},
		{name: "no tables", store: config.StoreSQLite, change: func(m *manifest) { m.Stores[storeMachines] = rows.Copied{} }, want: "schema 0", fix: "use Guideway v9.9.9"},
		{name: "newer format", store: config.StoreSQLite, change: func(m *manifest) { m.Format = 2 }, want: "format 2", fix: "use Guideway v9.9.9"},
		{name: "unknown place", store: config.StoreSQLite, change: func(m *manifest) { m.Members["elsewhere/file"] = "" }, want: `no member "elsewhere/file"`},
		{name: "beside a place", store: config.StoreSQLite, change: func(m *manifest) { m.Members["database/file"] = "" }, want: `no member "database/file"`},
	} {
		m := &manifest{
			Format: formatVersion, Program: "v9.9.9", Store: kindSQLite,
			Stores: map[string]rows.Copied{storeRuns: {Schema: 1}}, Members: map[string]string{"data/guideway.db": ""},
		}
		c.change(m)
		r := &restorer{manifest: m, cfg: &config.Config{Store: c.store}, places: []place{{memberData, "/data", false}}}
		err := r.check()
		switch {
		case c.want == "" && err == nil:
		case c.want == "" || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(guideway.ErrorFix(err), c.fix):
			t.Errorf("%s: %v (fix: %s), want %q", c.name, err, guideway.ErrorFix(err), c.want)
		case c.fix == "" && !errors.Is(err, errDamaged):
			t.Errorf("%s: %v is not the error for a damaged archive", c.name, err)
		}
	}
}
