-- Made when all rows are there, which is faster.
CREATE INDEX functions_by_name ON function_counts (name);
CREATE INDEX blocks_by_function ON block_counts (function_id);
CREATE INDEX blocks_by_line ON block_counts (source_id, line);
CREATE INDEX edges_by_function ON edge_counts (function_id);
CREATE INDEX calls_by_function ON call_counts (function_id);
