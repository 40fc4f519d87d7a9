package session

import (
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// EncodeData returns the JSON of a document's data, as stores keep it.
func EncodeData(data map[string]any) ([]byte, error) {
	if data == nil {
		data = map[string]any{}
	}
	text, err := jsontext.Marshal(data)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the document cannot be written as JSON: %w", err)
	}
	return text, nil
}

// DecodeData reads what EncodeData wrote; numbers keep all their digits.
func DecodeData(text []byte) (data map[string]any, err error) {
	err = jsontext.Decode(text, &data)
	return data, err
}
