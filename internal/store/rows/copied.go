package rows

// Copied describes a copy of a store for a backup.
type Copied struct {
	// Schema is the version of the tables.
	Schema int `json:"schema"`
	// Rows has the number of rows of each table, or of the important ones.
	Rows map[string]int64 `json:"rows"`
}
