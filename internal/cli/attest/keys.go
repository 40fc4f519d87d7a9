// Package attest implements the commands for attestations: their keys and their
// verification.
package attest

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/spf13/cobra"
)

// NewAttestCmd returns the command guideway attest.
func NewAttestCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:   "attest",
		Short: "Manage the keys that sign attestations",
		Long: `An attestation is a signed statement about a completed run: its definition, its steps with
their evidence and claims, its approvals, and the commit that it is about. "guideway runs
attest" writes one, "guideway verify" verifies it.`,
		Example: `  guideway attest keys create laptop
  guideway attest keys show laptop > laptop.pub
  guideway runs attest r_06bmyb2ad4ft47c6abwmtxs --out run.json
  guideway verify run.json --key laptop.pub`,
	}, newKeysCmd(a))
}

func newKeysCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:   "keys",
		Short: "Create, list, show and remove signing keys",
		Long: `A signing key is an Ed25519 key in a private file of your user. Its id is the SHA-256 of its
public key. Any program of your user can read the file, an agent included: a signature
proves which computer signed, not that a person did.`,
		Example: `  guideway attest keys create laptop
  guideway attest keys show laptop > laptop.pub`,
	}, newKeysListCmd(a), newKeysCreateCmd(a), newKeysShowCmd(a), newKeysRemoveCmd(a))
}

func openKeys(a *app.App) (app.SigningKeys, error) {
	cfg, err := a.Load()
	if err != nil {
		return app.SigningKeys{}, err
	}
	return app.OpenSigningKeys(cfg), nil
}

// completeKeys completes the names of the keys.
func completeKeys(a *app.App) cobra.CompletionFunc {
	return app.CompleteNames(1, cobra.ShellCompDirectiveNoFileComp, func(context.Context) ([]string, error) {
		keys, err := openKeys(a)
		if err != nil {
			return nil, err
		}
		return keys.Names()
	})
}

// keyEntry is a key in the output of --json.
type keyEntry struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	// Error explains why the key cannot be used.
	Error string `json:"error,omitempty"`
}

func newKeyEntry(key app.SigningKey) keyEntry {
	return keyEntry{Name: key.Name, ID: key.Public().ID(), PublicKey: key.Public().PEM()}
}

func newKeysListCmd(a *app.App) *cobra.Command {
	return app.NewPlainCmd(a, runKeysList, &cobra.Command{
		Use: "list", Short: "List signing keys",
		Example: "  guideway attest keys list --json",
	})
}

func runKeysList(_ context.Context, o *app.PlainOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	names, err := keys.Names()
	if err != nil {
		return err
	}
	entries := []keyEntry{}
	for _, name := range names {
		key, err := keys.Get(name)
		if err != nil {
			entries = append(entries, keyEntry{Name: name, Error: err.Error()})
			continue
		}
		entries = append(entries, newKeyEntry(key))
	}
	return app.WriteList(o.App.Host, o.JSON, app.Listing[keyEntry]{
		Items: entries, Answer: map[string]any{"keys": entries}, Empty: "There are no signing keys. To create one: guideway attest keys create NAME",
		Table: app.NewTable(1, "NAME", "ID"),
		Row: func(e keyEntry) []string {
			if e.Error != "" {
				return []string{e.Name, "cannot be read: " + e.Error}
			}
			return []string{e.Name, e.ID}
		},
	})
}

func newKeysCreateCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runKeysCreate, &cobra.Command{
		Use: "create NAME", Short: "Create a signing key",
		Long: `Create a signing key. Give its public key to those who verify your attestations, over a
channel that they trust, such as a reviewed file of the repository.`,
		Example:           "  guideway attest keys create laptop",
		Args:              app.ExactArgs(1, "one name", "guideway attest keys create laptop"),
		ValidArgsFunction: cobra.NoFileCompletions,
	})
}

// keyChange is the output of --json of a change.
type keyChange struct {
	app.ChangeResult
	Key *keyEntry `json:"key,omitempty"`
}

func runKeysCreate(_ context.Context, o *app.NameOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	key, err := keys.Create(o.Name)
	if err != nil {
		return err
	}
	entry := newKeyEntry(key)
	return o.App.Host.WriteChange(o.JSON, keyChange{
		ChangeResult: app.ChangeResult{Action: "created", Changed: true, Kind: app.KindSigningKey, Name: key.Name}, Key: &entry,
	}, fmt.Sprintf("Created: %s, id %s\nTo print its public key: guideway attest keys show %s", key.Name, entry.ID, key.Name))
}

func newKeysShowCmd(a *app.App) *cobra.Command {
	return app.NewNameCmd(a, runKeysShow, &cobra.Command{
		Use: "show NAME", Short: "Print the public key of a signing key",
		Example:           "  guideway attest keys show laptop --json",
		Args:              app.ExactArgs(1, "one name", "guideway attest keys show laptop"),
		ValidArgsFunction: completeKeys(a),
	})
}

func runKeysShow(_ context.Context, o *app.NameOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	key, err := keys.Get(o.Name)
	if err != nil {
		return err
	}
	host := o.App.Host
	return host.WriteJSONOr(o.JSON, newKeyEntry(key), func() { fmt.Fprint(host.Out, key.Public().PEM()) })
}

func newKeysRemoveCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runKeysRemove, &cobra.Command{
		Use: "remove NAME", Short: "Remove a signing key",
		Long: `Remove a signing key from this computer. Attestations that it signed can still be verified
with its public key; to reject them, remove the public key from where it is trusted.`,
		Example:           "  guideway attest keys remove laptop",
		Args:              app.ExactArgs(1, "one name", "guideway attest keys remove laptop"),
		ValidArgsFunction: completeKeys(a),
	})
}

func runKeysRemove(_ context.Context, o *app.NameOptions) error {
	keys, err := openKeys(o.App)
	if err != nil {
		return err
	}
	if err := keys.Remove(o.Name); err != nil {
		return err
	}
	return o.App.Host.WriteChange(o.JSON, app.ChangeResult{Action: "removed", Changed: true, Kind: app.KindSigningKey, Name: o.Name}, "Removed: "+o.Name)
}
