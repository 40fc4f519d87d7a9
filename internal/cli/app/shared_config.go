package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

// sharedConfigEntry is the name of the entry with the shared settings.
const sharedConfigEntry = "guideway.json"

// sharedMembers are the members of the configuration file that all instances share. The file
// of each instance has a copy.
type sharedMembers struct {
	Upstreams json.RawMessage `json:"upstreams,omitempty"`
	Gateway   json.RawMessage `json:"gateway,omitempty"`
}

// readShared returns the shared members of a configuration file as one text.
func readShared(content []byte) (string, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return "{}", nil
	}
	var members sharedMembers
	if err := install.DecodeMembers(content, &members); err != nil {
		return "", err
	}
	text, err := json.Marshal(members) // Marshal compacts raw messages
	return string(text), err
}

// setShared returns a configuration file with other shared members.
func setShared(content []byte, text string) ([]byte, error) {
	if now, err := readShared(content); err != nil || now == text {
		return content, err
	}
	var members sharedMembers
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, err
	}
	for name, value := range map[string]json.RawMessage{"upstreams": members.Upstreams, "gateway": members.Gateway} {
		if value == nil {
			value = json.RawMessage(`{}`)
		}
		var err error
		if content, err = install.SetMember(content, []string{name}, value); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// SyncConfig makes the configuration file of this instance and the shared settings equal, and
// returns the settings. base are those of the last call, "" before the first: if the shared
// settings have changed since, they replace those of the file, otherwise a person may have
// edited the file, and its settings become the shared ones.
func (a *App) SyncConfig(ctx context.Context, cfg *config.Config, base string) (next string, err error) {
	if cfg.Shared == nil {
		return "", nil
	}
	if same, err := isSynced(ctx, cfg, base); same || err != nil {
		return base, err
	}
	err = a.changeShared(ctx, cfg, func(content []byte, text string) ([]byte, error) {
		if text == "" || text == base {
			return content, nil
		}
		return setShared(content, text)
	}, &next)
	return next, err
}

// isSynced reports whether the file and the shared settings are those of the last call of
// SyncConfig.
func isSynced(ctx context.Context, cfg *config.Config, base string) (bool, error) {
	path, err := ConfigFile(cfg)
	if err != nil {
		return false, err
	}
	file, err := install.Read(ctx, path)
	if err != nil {
		return false, err
	}
	if text, err := readShared(file.Content); err != nil || text != base {
		return false, err
	}
	e, err := deployment.Get(ctx, cfg.Shared, sharedConfigEntry)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return e.Text == base, err
}

// changeShared edits the configuration file of this instance, and publishes its settings. edit
// gets the content of the file and the shared settings.
func (a *App) changeShared(ctx context.Context, cfg *config.Config, edit func(content []byte, text string) ([]byte, error), next *string) error {
	return cfg.Shared.Change(ctx, sharedConfigEntry, func(text string) (string, error) {
		_, err := a.editConfigFile(ctx, cfg, func(content []byte) ([]byte, error) {
			content, err := edit(content, text)
			if err == nil {
				*next, err = readShared(content)
			}
			return content, err
		})
		return *next, err
	})
}
