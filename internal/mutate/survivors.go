// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"strings"
)

// survivors are mutants that may survive, by key, with the reason.
type survivors map[string]string

// equivalent begins the reason of a mutant that behaves as the code does.
const equivalent = "equivalent: "

// readSurvivors reads the survivors of one package, given as its path from the
// root. Their keys are those of its mutants.
func readSurvivors(file, pkg string) (survivors, error) {
	all, err := readAll(file)
	if err != nil {
		return nil, err
	}
	ours := survivors{}
	for key, reason := range all {
		if path.Dir(fileOf(key)) == pkg {
			ours[strings.TrimPrefix(key, pkg+"/")] = reason
		}
	}
	return ours, nil
}

// readAll reads the survivors of all packages. A line is the path of a package, a
// slash, the key of a mutant, "#" and the reason.
func readAll(file string) (survivors, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := survivors{}
	number := 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, found := strings.Cut(line, "` # ")
		if !found || reason == "" {
			return nil, fmt.Errorf("%s:%d: the line gives no reason: it has no \"` # \" with a text behind it", file, number)
		}
		all[key+"`"] = reason
	}
	return all, lines.Err()
}

// fileOf is the path of the file in a line of the survivors.
func fileOf(line string) string {
	file, _, _ := strings.Cut(line, " ")
	return file
}
