package session

import (
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// EncodeData returns the data of a document as stores keep it: as JSON, or encrypted.
func (d Document) EncodeData() ([]byte, error) {
	if d.Sealed != nil {
		return d.Sealed, nil
	}
	data := d.Data
	if data == nil {
		data = map[string]any{}
	}
	text, err := jsontext.Marshal(data)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the session document cannot be encoded as JSON: %w", err)
	}
	return text, nil
}

// DecodeData reads the JSON of a document; numbers keep all their digits.
func DecodeData(text []byte) (data map[string]any, err error) {
	err = jsontext.Decode(text, &data)
	return data, err
}
