// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
)

// What a line leaves open, which is decided as if it were not there.
const (
	noObject = "the line has no objects: what objectSelector and matchConditions say of them, of options and of userInfo.extra is decided as if there were none"
	isMasked = "the line has " + decisionlog.Masked + " for values in objects, and is decided by that"
	isCut    = "the line has some names or lists cut short"
)

// explainDecision explains a line of the decision log.
func explainDecision(cmd *cobra.Command, o Options, cfg *config.Config, path string) (*dispatcher.Explanation, error) {
	line, err := readFile(cmd.InOrStdin(), path)
	if err != nil {
		return nil, err
	}
	var d decisionlog.Line
	if err := json.Unmarshal(line, &d); err != nil {
		return nil, fmt.Errorf("%s: not one line of the decision log: %w", path, err)
	}
	phase, ok := parsePhase(d.Phase)
	if !ok {
		return nil, fmt.Errorf("%s: not a line of the decision log: the phase is %q", path, d.Phase)
	}
	cluster, err := compiledCluster(cmd.ErrOrStderr(), o, cfg, d.Cluster)
	if err != nil {
		return nil, err
	}
	review, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": d.Request})
	if err != nil {
		return nil, err
	}
	explanation, err := explainReview(review, cluster, phase)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	explanation.Note = strings.Join(append([]string{
		"by the configuration as it is now; the decision was made by snapshot " + d.Snapshot,
	}, gaps(&d)...), "; ")
	return explanation, nil
}

// gaps says what the review had and the line does not.
func gaps(d *decisionlog.Line) (list []string) {
	objects := slices.Concat(d.Request.Object, d.Request.OldObject, d.Request.Options)
	switch {
	case d.Request.Object == nil && d.Request.OldObject == nil:
		list = append(list, noObject)
	case bytes.Contains(objects, []byte(strconv.Quote(decisionlog.Masked))):
		list = append(list, isMasked)
	}
	if d.Cut {
		list = append(list, isCut)
	}
	return list
}
