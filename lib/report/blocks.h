#pragma once

#include "report/inspect.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A report between answer and characters: what text and Markdown have in common. Every string is
// already safe for a terminal.

namespace kernelpath::report {

// How a piece of text is meant; a colour is chosen from it and never the only carrier of it.
enum class Tone : std::uint8_t { kPlain, kGood, kWarn, kBad, kDim };

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
};

struct Block {
  enum class Kind : std::uint8_t { kTitle, kHeading, kSubheading, kLine, kTable, kGap };
  Kind kind = Kind::kLine;
  Cell line = {};                            // of all but kTable and kGap
  std::vector<std::string> header = {};      // of kTable
  std::vector<std::vector<Cell>> rows = {};  // of kTable
};

std::vector<Block> inspect_blocks(const InputAnswer& answer, const View& view);

Block title_block(std::string text);
Block heading_block(std::string text);
Block subheading_block(std::string text);
Block line_block(std::string text, Tone tone = Tone::kPlain);
Block gap_block();

std::string render_text(const std::vector<Block>& blocks, const View& view);
std::string render_markdown(const std::vector<Block>& blocks);
// A whole document.
std::string render_html(std::string_view title, const std::vector<Block>& blocks);

}  // namespace kernelpath::report
