package checkpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// measureStorage measures the stored bytes of sessions.
func (b *bench) measureStorage(ctx context.Context) (*table, error) {
	t := &table{
		title: "### Storage\n\nThe contexts as canonical JSON, and what their blobs take. \"On disk\" is all files: blobs, the database with its index of words and its log, the reserve of 1 MiB left out.",
		head:  []string{"sessions", "checkpoints each", "contexts", "blobs", "ratio", "on disk"},
	}
	sessions := b.Pick(6, 2)
	for _, share := range []float64{0.90, 0.97} {
		for _, n := range []int{20, 100} {
			err := b.saveAndCount(ctx, t, fmt.Sprintf("%d made, %.0f%% shared", sessions, 100*share), fmt.Sprint(n), func(yield func(string, json.RawMessage) error) error {
				for session := range sessions {
					for _, text := range contextsOf(uint64(session), n, 1-share) {
						if err := yield(fmt.Sprint("s", session), text); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	walks, err := b.walkWorkflows(ctx)
	if err != nil {
		return nil, err
	}
	var fewest, most int
	for _, w := range walks {
		if n := len(w.exports); fewest == 0 || n < fewest {
			fewest = n
		}
		most = max(most, len(w.exports))
	}
	err = b.saveAndCount(ctx, t, fmt.Sprintf("%d runs of bundled workflows, exported after each step", len(walks)), fmt.Sprintf("%d-%d", fewest, most),
		func(yield func(string, json.RawMessage) error) error {
			for _, w := range walks {
				for _, text := range w.exports {
					if err := yield(w.name, text); err != nil {
						return err
					}
				}
			}
			return nil
		})
	return t, err
}

// saveAndCount saves contexts and adds their bytes to the table.
func (b *bench) saveAndCount(ctx context.Context, t *table, what, each string, contexts func(yield func(session string, text json.RawMessage) error) error) error {
	dir, err := b.newDir()
	if err != nil {
		return err
	}
	c, err := b.openStore(ctx, dir)
	if err != nil {
		return err
	}
	err = contexts(func(session string, text json.RawMessage) error {
		_, err := c.Save(ctx, owner(), checkpoint.SaveRequest{Session: session, Context: text, Workflow: "bench"})
		return err
	})
	if err != nil {
		return err
	}
	stats, err := c.Stats(ctx, "")
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	disk, err := onDisk(dir)
	if err != nil {
		return err
	}
	t.addRow(what, each, formatSize(stats.Bytes), formatSize(stats.Stored), fmt.Sprintf("%.1fx", stats.Ratio), formatSize(disk))
	return nil
}

// onDisk sums the sizes of the files of a directory, except the disk reserve.
func onDisk(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "reserve" {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
