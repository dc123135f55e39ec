#!/usr/bin/env bash
# Judges every deployment of this repository before anybody rents a GPU.
#
# usage: docs/ci/llm-validate.sh [DEPLOYMENTS_DIR]        (default: deployments)
#
# Each deployment is a folder with model/config.json and extra_llm_api_options.yaml. Reports go to
# reports/: one JUnit file and one SARIF file a deployment. Only findings that baseline.json does not
# have count. Exit code 1 if any deployment has a new error.
set -euo pipefail

deployments="${1:-deployments}"
mkdir -p reports
status=0
for folder in "$deployments"/*/; do
  name="$(basename "$folder")"
  arguments=(--engine trtllm --device h200 --yaml "$folder/extra_llm_api_options.yaml" --fail-on error)
  if [ -f "$folder/baseline.json" ]; then
    arguments+=(--baseline "$folder/baseline.json")
  fi
  code=0
  llm-validate "${arguments[@]}" --output "junit:reports/$name.xml" \
    --output "sarif:reports/$name.sarif" "$folder/model" || code=$?
  # 1 is a finding; anything above says that the question itself was wrong.
  if [ "$code" -gt 1 ]; then
    exit "$code"
  fi
  if [ "$code" -eq 1 ]; then
    status=1
  fi
done
exit "$status"
