// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/telemetry"
)

// noObject is what a line without objects leaves open.
const noObject = "the line has no objects: what objectSelector and matchConditions say of them is decided as if there were none"

// explainDecision explains a line of the decision log.
func explainDecision(cmd *cobra.Command, cfg *config.Config, path string) (*dispatcher.Explanation, error) {
	line, err := readFile(cmd.InOrStdin(), path)
	if err != nil {
		return nil, err
	}
	var d telemetry.Decision
	if err := json.Unmarshal(line, &d); err != nil {
		return nil, fmt.Errorf("%s: not one line of the decision log: %w", path, err)
	}
	phase, ok := parsePhase(d.Phase)
	if !ok {
		return nil, fmt.Errorf("%s: not a line of the decision log: the phase is %q", path, d.Phase)
	}
	cluster, err := compiledCluster(cmd.ErrOrStderr(), cfg, d.Cluster)
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
	explanation.Note = "by the configuration as it is now; the decision was made by snapshot " + d.Snapshot
	if d.Request.Object == nil && d.Request.OldObject == nil {
		explanation.Note += "; " + noObject
	}
	return explanation, nil
}
