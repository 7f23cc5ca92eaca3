package auth

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// minTokenColumns are token, user name and uid; groups may follow.
const minTokenColumns = 3

// ParseTokens reads static tokens in the form that Kubernetes gives them: lines of
// token, user name and uid, and optionally a fourth column with the groups, quoted
// and separated by commas.
func ParseTokens(data []byte) (map[string]User, error) {
	return parseTokens(bytes.NewReader(data))
}

func parseTokens(r io.Reader) (map[string]User, error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1
	lines.Comment = '#'
	lines.TrimLeadingSpace = true
	users := map[string]User{}
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return users, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		switch {
		case len(fields) < minTokenColumns:
			return nil, fmt.Errorf("line %d has %d columns; it needs token, user name and uid, and may have groups", line, len(fields))
		case fields[0] == "":
			return nil, fmt.Errorf("line %d has an empty token", line)
		}
		if _, twice := users[fields[0]]; twice {
			return nil, fmt.Errorf("line %d repeats a token", line)
		}
		users[fields[0]] = userOf(fields)
	}
}

func userOf(fields []string) User {
	user := User{Name: fields[1], UID: fields[2]}
	if len(fields) > minTokenColumns {
		for group := range strings.SplitSeq(fields[minTokenColumns], ",") {
			if group = strings.TrimSpace(group); group != "" {
				user.Groups = append(user.Groups, group)
			}
		}
	}
	return user
}
