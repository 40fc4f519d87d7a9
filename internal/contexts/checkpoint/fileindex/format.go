package fileindex

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// formatVersion is the format of the files. Format 1, of development versions, had no
// member "format".
const formatVersion = 2

// ErrFormat is wrapped by errors about files of another format.
var ErrFormat = errors.New("the format of the file is not supported")

// newFormatError returns the error for a file of another format. The file is not changed,
// since another version of the program may be using it.
func newFormatError(path string, found int) error {
	err := guideway.Errorf(guideway.CodeUnavailable, "read the index file %s: %w: the file has format %d, but this version of Guideway supports format %d; the file was not changed",
		path, ErrFormat, found, formatVersion)
	if found > formatVersion {
		return err.WithFix("use the version of Guideway that wrote the file, or a later one")
	}
	return err.WithFix("move the file away, then run `guideway checkpoint verify --rebuild`: it restores the index from the stored checkpoints")
}

// fileName returns the file name of a series.
func fileName(key checkpoint.SeriesKey) string {
	sum := sha256.Sum256([]byte(key.User + "\x00" + key.Session))
	return hex.EncodeToString(sum[:16]) + suffix
}

// fileContent is the JSON of a file.
type fileContent struct {
	*seriesData

	Format int `json:"format"`
}

// encodeSeries encodes a series: a line with a checksum, then JSON.
func (l *seriesData) encodeSeries() ([]byte, error) {
	body, err := json.Marshal(fileContent{l, formatVersion})
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the index: %w", err)
	}
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(hex.EncodeToString(sum[:])+"\n"), body, []byte("\n")), nil
}

// parseSeries decodes a file. ok is false if the file is damaged. l is nil if the file has
// another format.
func parseSeries(data []byte) (l *seriesData, format int, ok bool) {
	sum, body, found := strings.Cut(string(data), "\n")
	body = strings.TrimSuffix(body, "\n")
	want := sha256.Sum256([]byte(body))
	if !found || sum != hex.EncodeToString(want[:]) {
		return nil, 0, false
	}
	var head struct{ Format int }
	if json.Unmarshal([]byte(body), &head) != nil {
		return nil, 0, false
	}
	if head.Format != formatVersion {
		return nil, max(head.Format, 1), true
	}
	l = &seriesData{}
	return l, head.Format, json.Unmarshal([]byte(body), l) == nil
}
